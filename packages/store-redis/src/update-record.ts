import { storeErrors, type TaskPatch } from "@longjobs/core";
import { homeIndex } from "./lease-indexes.ts";
import { updateTask } from "./lua/update-task.ts";
import { indexesKeptChanging, unknownReply } from "./redis-errors.ts";
import type { StoreContext } from "./store-context.ts";
import { placeOf, type TaskPlace } from "./store-keys.ts";
import { appendFields, asList, leaseArgument, lifeArgument, tokenArgument } from "./task-fields.ts";

/** Fields that no patch changes, and those that may change the life of a task, its lease or the index it is in. */
const roles: ReadonlyMap<string, "fixed" | "indexed"> = new Map([
  ["taskId", "fixed"],
  ["version", "fixed"],
  ["createdAt", "fixed"],
  ["status", "indexed"],
  ["lease", "indexed"],
  ["cancelRequestedAt", "indexed"],
  ["ttlMs", "indexed"],
  ["work", "indexed"],
  ["kind", "indexed"],
]);

/** An index is unknown once per tool and process, and hardly any task changes its tool. */
const MOST_ATTEMPTS = 3;

/**
 * What `update` will send, made while the patch is as the caller gave it (C6).
 *
 * @throws TypeError for a field that no patch changes; LongJobsError `invalid_json`, `record_too_large`
 */
export function prepareUpdate(
  context: StoreContext,
  taskId: string,
  patch: TaskPatch,
  expectedVersion: number,
): () => Promise<number> {
  const { maxRecordBytes } = context;
  const facts = factsOf(patch);
  const nextVersion = expectedVersion + 1;
  const values = [String(expectedVersion), String(nextVersion), String(maxRecordBytes), "", ""];
  const { mostBytes, absent } = appendFields(taskId, patch, values, maxRecordBytes);
  values[3] = String(mostBytes);
  values[4] = String((values.length - 5) / 2);
  values.push(...absent);
  const place = placeOf(taskId);
  const read = (reply: unknown): number => {
    if (reply === 1) return nextVersion;
    const [code, detail] = asList(reply);
    // A client may be set to give numbers as texts.
    if (Number(code) === 1) return nextVersion;
    if (Number(code) === 0) throw storeErrors.unknownTask(taskId);
    if (Number(code) === -1) throw storeErrors.versionConflict(taskId, expectedVersion, Number(detail));
    if (Number(code) === -2) throw storeErrors.recordTooLarge(taskId, Number(detail), maxRecordBytes);
    throw unknownReply(code);
  };
  if (facts !== undefined) {
    return () => context.gate.run(() => runIndexedUpdate(context, place, values, facts).then(read));
  }
  // Most patches touch nothing but the task.
  const task = [context.keys.task(place.shard, place.member)];
  return () => context.runner.run(updateTask, task, values, read);
}

/** What a patch says of the fields that the store interprets; empty where it says nothing. */
interface PatchFacts {
  readonly life: string;
  readonly lease: string;
  readonly token: string;
  readonly home: string;
}

/** `undefined` when it says nothing of any. @throws TypeError for a field that no patch changes (C11) */
function factsOf(patch: TaskPatch): PatchFacts | undefined {
  let isIndexed = false;
  for (const field of Object.keys(patch)) {
    const role = roles.get(field);
    if (role === "fixed") throw new TypeError(`A patch cannot set ${field}.`);
    if (role === "indexed") isIndexed = true;
  }
  if (!isIndexed) return undefined;
  const leased = Object.hasOwn(patch, "lease");
  return {
    life: Object.hasOwn(patch, "ttlMs") ? lifeArgument(patch.ttlMs) : "",
    lease: leased ? leaseArgument(patch.lease) : "",
    token: leased ? tokenArgument(patch.lease?.token) : "",
    home: Object.hasOwn(patch, "work") ? homeIndex(patch.work) : "",
  };
}

/** One script; a second one when the task was in an index that this store had not met. */
async function runIndexedUpdate(
  { runner, keys, indexes }: StoreContext,
  { taskId, member, shard }: TaskPlace,
  values: readonly string[],
  { life, lease, token, home }: PatchFacts,
): Promise<unknown> {
  indexes.learn([home]);
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const { names } = indexes;
    const given = [
      keys.task(shard, member),
      keys.expiries(shard),
      keys.indexNames(shard),
      ...names.map((name) => keys.index(shard, name)),
    ];
    const facts = [member, life, lease, token, home, ...names];
    const reply = await runner.run(updateTask, given, [...values, ...facts]);
    const [code, from, to] = asList(reply);
    if (Number(code) !== 2) return reply;
    indexes.learn([String(from), String(to)]);
  }
  throw indexesKeptChanging([taskId]);
}
