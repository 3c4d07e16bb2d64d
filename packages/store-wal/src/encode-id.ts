import { hashId, type IdHash } from "./hash-id.ts";

/** A task id with what each of its frames says about it: worked out once, kept beside the record. */
export interface EncodedId {
  readonly taskId: string;
  readonly hash: IdHash;
  /** UTF-8 has no form for half a pair: such an id is written as UTF-16. */
  readonly utf16: boolean;
  /** Bytes in a frame. */
  readonly bytes: number;
  /** Bytes as a JSON string. */
  readonly textBytes: number;
}

export function encodeId(taskId: string): EncodedId {
  const utf16 = !taskId.isWellFormed();
  return {
    taskId,
    hash: hashId(taskId),
    utf16,
    bytes: utf16 ? taskId.length * 2 : Buffer.byteLength(taskId),
    // An id of the usual letters is as long as it looks.
    textBytes: /^[\w-]*$/.test(taskId) ? taskId.length + 2 : Buffer.byteLength(JSON.stringify(taskId)),
  };
}
