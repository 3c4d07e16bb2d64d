import { storeErrors, type TaskPatch } from "@longjobs/core";
import { homeIndex } from "./lease-indexes.ts";
import { updateTask } from "./lua/update-task.ts";
import { indexesKeptChanging } from "./redis-errors.ts";
import type { StoreContext } from "./store-context.ts";
import { placeOf, type TaskPlace } from "./store-keys.ts";
import { assertMayFit, leaseArgument, lifeArgument, tokenArgument, writePatch } from "./task-fields.ts";

/** A patch of one of these may change the life of a task, its lease, or the index it is in. */
const indexedFields = ["status", "lease", "cancelRequestedAt", "ttlMs", "work", "kind"] as const;

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
  const { indexes, maxRecordBytes } = context;
  const { pairs, deleted } = writePatch(patch);
  assertMayFit(taskId, pairs, maxRecordBytes);
  const place = placeOf(taskId);
  const values = [
    String(expectedVersion),
    String(maxRecordBytes),
    String(pairs.length / 2),
    ...pairs,
    ...deleted,
  ];
  const facts = indexedFields.some((field) => Object.hasOwn(patch, field)) ? factsOf(patch) : undefined;
  if (facts !== undefined && facts.home !== "") indexes.learn([facts.home]);
  return () =>
    runUpdate(context, place, values, facts).then(([code, detail]) => {
      if (code === 0) throw storeErrors.unknownTask(taskId);
      if (code === -1) throw storeErrors.versionConflict(taskId, expectedVersion, Number(detail));
      if (code === -2) throw storeErrors.recordTooLarge(taskId, Number(detail), maxRecordBytes);
      return expectedVersion + 1;
    });
}

/** What a patch says of the fields that the store interprets; empty where it says nothing. */
interface PatchFacts {
  readonly life: string;
  readonly lease: string;
  readonly token: string;
  readonly home: string;
}

function factsOf(patch: TaskPatch): PatchFacts {
  const leased = Object.hasOwn(patch, "lease");
  return {
    life: Object.hasOwn(patch, "ttlMs") ? lifeArgument(patch.ttlMs) : "",
    lease: leased ? leaseArgument(patch.lease) : "",
    token: leased ? tokenArgument(patch.lease?.token) : "",
    home: Object.hasOwn(patch, "work") ? homeIndex(patch.work) : "",
  };
}

/** One script. Most patches touch nothing but the task. */
function runUpdate(
  context: StoreContext,
  place: TaskPlace,
  values: readonly string[],
  facts: PatchFacts | undefined,
): Promise<readonly unknown[]> {
  if (facts !== undefined) return runIndexedUpdate(context, place, values, facts);
  const task = context.keys.task(place.shard, place.member);
  return context.runner.run(updateTask, [task], values) as Promise<readonly unknown[]>;
}

/** One script; a second one when the task was in an index that this store had not met. */
async function runIndexedUpdate(
  { runner, keys, indexes }: StoreContext,
  { taskId, member, shard }: TaskPlace,
  values: readonly string[],
  { life, lease, token, home }: PatchFacts,
): Promise<readonly unknown[]> {
  for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
    const { names } = indexes;
    const given = [
      keys.task(shard, member),
      keys.expiries(shard),
      keys.indexNames(shard),
      ...names.map((name) => keys.index(shard, name)),
    ];
    const facts = [member, life, lease, token, home, ...names];
    const reply = (await runner.run(updateTask, given, [...values, ...facts])) as readonly unknown[];
    const [code, from, to] = reply;
    if (code !== 2) return reply;
    indexes.learn([String(from), String(to)]);
  }
  throw indexesKeptChanging([taskId]);
}
