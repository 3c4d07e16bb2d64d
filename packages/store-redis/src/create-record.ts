import { storeErrors, type TaskRecord } from "@longjobs/core";
import { homeIndex, indexOf } from "./lease-indexes.ts";
import { createTask } from "./lua/create-task.ts";
import { unknownReply } from "./redis-errors.ts";
import type { StoreContext } from "./store-context.ts";
import { placeOf } from "./store-keys.ts";
import {
  appendFields,
  asList,
  assertRecord,
  leaseArgument,
  lifeArgument,
  tokenArgument,
} from "./task-fields.ts";

/**
 * What `create` will send, made while the record is as the caller gave it (C6).
 *
 * @throws TypeError for what is no record; LongJobsError `invalid_json`, `record_too_large`
 */
export function prepareCreate(
  { runner, keys, indexes, maxRecordBytes }: StoreContext,
  record: TaskRecord,
): () => Promise<void> {
  assertRecord(record);
  const { taskId, ttlMs, lease, work } = record;
  const { member, shard } = placeOf(taskId);
  const home = homeIndex(work);
  const index = indexOf(record);
  indexes.learn([home]);
  const scriptKeys = [
    keys.task(shard, member),
    keys.expiries(shard),
    keys.indexNames(shard),
    keys.index(shard, index ?? home),
  ];
  const values = [
    member,
    lifeArgument(ttlMs),
    leaseArgument(lease),
    tokenArgument(lease?.token),
    home,
    index ?? "",
    String(maxRecordBytes),
  ];
  appendFields(taskId, record, values, maxRecordBytes);
  return () =>
    runner.run(createTask, scriptKeys, values, (reply) => {
      const [code, bytes] = asList(reply);
      // A client may be set to give numbers as texts.
      if (Number(code) === 1) return;
      if (Number(code) === 0) throw storeErrors.taskExists(taskId);
      if (Number(code) === -2) throw storeErrors.recordTooLarge(taskId, Number(bytes), maxRecordBytes);
      throw unknownReply(code);
    });
}
