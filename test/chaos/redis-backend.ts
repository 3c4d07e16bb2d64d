import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { Redis } from "ioredis";

import { startRedisServer } from "../../packages/store-redis/test/support/redis-server.ts";
import { keysUnder } from "../../packages/store-redis/test/support/store-fixture.ts";
import { lastingTask, type Backend } from "./backend.ts";
import type { Version } from "./history.ts";
import { readAppendOnlyFile } from "./append-only-file.ts";

/** As durable as Redis can be: every write is on disk before it is acknowledged, and nothing of what was written is left out. */
const settings = ["--appendonly yes", "--appendfsync always", "--auto-aof-rewrite-percentage 0"].flatMap(
  (setting) => setting.split(" "),
);

/** What may live for ever: the number of the format, what says which tasks there are, and that one record. */
const lasting = new RegExp(`:(?:format|\\{\\d+\\}:(?:exp|indexes|cancelled|due:.*|t:${lastingTask}))$`, "s");

export async function startRedisBackend(name: string): Promise<Backend> {
  const server = await startRedisServer(settings);
  const asked = async <Value>(ask: (client: Redis) => Promise<Value>): Promise<Value> => {
    const client = new Redis(server.url);
    try {
      return await ask(client);
    } finally {
      client.disconnect();
    }
  };
  const [, dir = ""] = await asked((client) => client.config("GET", "dir"));
  return {
    kind: "redis",
    port: server.port,
    urlAt: (port) => `redis://127.0.0.1:${port}`,
    kill: () => server.kill(),
    restart: () => server.restart(),
    pause: () => server.pause(),
    resume: () => server.resume(),
    readVersions: async () => {
      // Redis 7 keeps the file in a folder of its own; the part before the first write is empty.
      const [file] = globSync(["appendonlydir/*.incr.aof", "appendonly.aof"], { cwd: dir });
      return versionsOf(name, readFileSync(join(dir, file ?? "")));
    },
    readLasting: () =>
      asked(async (client) => {
        const keys = (await keysUnder(client, name)).filter((key) => !lasting.test(key));
        const lives = await Promise.all(keys.map((key) => client.pttl(key)));
        return keys.filter((_key, index) => lives[index] === -1);
      }),
    remove: () => server.stop(),
  };
}

/** The states of the tasks of one store, told by the file that every write of the server is in. */
function versionsOf(name: string, file: Buffer): Version[] {
  const tasks = new Map<string, Map<string, string>>();
  const versions: Version[] = [];
  for (const transaction of readAppendOnlyFile(file)) {
    const touched = new Map<string, Map<string, string> | undefined>();
    for (const [command = "", key = "", ...args] of transaction) {
      if (!key.startsWith(`${name}:{`) || !key.includes("}:t:")) continue;
      if (!touched.has(key)) touched.set(key, tasks.get(key));
      tasks.set(key, applied(tasks.get(key) ?? new Map(), command.toUpperCase(), args));
    }
    for (const [key, before] of touched) {
      const fields = tasks.get(key);
      // A renewal changes no version.
      if (fields === undefined || fields.get("version") === before?.get("version") || fields.size === 0)
        continue;
      versions.push(toVersion(key, fields, before));
    }
  }
  return versions;
}

function applied(
  before: ReadonlyMap<string, string>,
  command: string,
  args: readonly string[],
): Map<string, string> {
  const after = new Map(before);
  if (command === "HSET")
    for (let at = 0; at < args.length; at += 2) after.set(args[at] ?? "", args[at + 1] ?? "");
  else if (command === "HINCRBY")
    after.set(args[0] ?? "", String(Number(after.get(args[0] ?? "")) + Number(args[1])));
  else if (command === "HDEL") for (const field of args) after.delete(field);
  else if (command === "DEL" || command === "UNLINK") after.clear();
  else if (command !== "PEXPIREAT" && command !== "PERSIST")
    throw new Error(`${command} is not known here; teach it to this reader.`);
  return after;
}

function toVersion(
  key: string,
  fields: ReadonlyMap<string, string>,
  before: ReadonlyMap<string, string> | undefined,
): Version {
  const record = Object.fromEntries(
    [...fields].flatMap(([field, text]) =>
      field.startsWith("@") ? [] : [[field, JSON.parse(text) as unknown]],
    ),
  ) as unknown as Version;
  const taken =
    before?.has("@token") === true && fields.has("@token") && before.get("@token") !== fields.get("@token");
  // The deadline of the new lease says when it was taken.
  const takenAtMs = Number(fields.get("@due")) - (record.lease?.durationMs ?? 0);
  return {
    ...record,
    taskId: key.slice(key.indexOf("}:t:") + "}:t:".length),
    ...(taken ? { leaseLeftMs: Number(before.get("@due")) - takenAtMs } : {}),
  };
}
