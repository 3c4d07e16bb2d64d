import { LongJobsError, reportBackgroundError, type ErrorListener } from "@longjobs/core";
import { isCluster, type RedisClusterClient, type RedisConnection } from "./client.ts";
import { checkFormat } from "./lua/check-format.ts";
import type { ScriptRunner } from "./script-runner.ts";

/** The number of the format of keys and fields, described in docs/decisions. */
const FORMAT = 1;

/** What {@link checkServer} looks at. */
export interface ServerToCheck {
  readonly client: RedisConnection | RedisClusterClient;
  readonly runner: ScriptRunner;
  readonly formatKey: string;
  readonly onError: ErrorListener | undefined;
}

/**
 * Makes sure, before the first call, that the data are ours to read and that the server evicts nothing.
 *
 * @throws LongJobsError `schema_too_new` for data of a later version; `store_unavailable` when Redis may evict keys.
 */
export async function checkServer(server: ServerToCheck): Promise<void> {
  const { runner, formatKey } = server;
  const found = await runner.run(checkFormat, [formatKey], [String(FORMAT)]);
  if (Number(found) > FORMAT) {
    throw new LongJobsError(
      "schema_too_new",
      `The tasks under ${formatKey} have format ${String(found)}, and this version knows ${FORMAT}; update @longjobs/store-redis.`,
      { partial: { format: Number(found) } },
    );
  }
  const primaries = isCluster(server.client) ? server.client.nodes("master") : [server.client];
  await Promise.all(primaries.map((primary) => checkEviction(server, primary)));
}

/** A user without the right to ask is told so, once, and may go on. */
async function checkEviction({ runner, onError }: ServerToCheck, primary: RedisConnection): Promise<void> {
  const policy = await readPolicy(runner, primary).catch((error: unknown) => {
    reportBackgroundError(unknownPolicy(error), onError);
  });
  if (policy === undefined || policy === "noeviction") return;
  throw new LongJobsError(
    "store_unavailable",
    `Redis is set to evict keys when it is full (maxmemory-policy ${policy}): accepted tasks would vanish.`,
    { recoveryHint: "Set maxmemory-policy to noeviction." },
  );
}

async function readPolicy(runner: ScriptRunner, primary: RedisConnection): Promise<string> {
  const memory = await runner.finish(primary.info("memory"));
  const policy = /^maxmemory_policy:([\w-]+)/m.exec(String(memory))?.[1];
  if (policy === undefined) throw new Error("INFO names no maxmemory_policy.");
  return policy;
}

function unknownPolicy(cause: unknown): LongJobsError {
  return new LongJobsError(
    "store_unavailable",
    "Cannot tell whether Redis evicts keys when it is full; make sure that maxmemory-policy is noeviction.",
    { cause },
  );
}
