import { isTaskId, LongJobsError } from "@longjobs/core";
import type { LongJobsErrorOptions } from "@longjobs/core";
import { errnoOf } from "./disk-files.ts";

/** The HTTP status of an error that a data store throws, for `@tus/server`, which reads it from the error. */
const tusStatus: Readonly<Record<string, number>> = {
  unknown_transfer: 404,
  offset_mismatch: 409,
  not_active: 409,
  size_mismatch: 413,
  transfer_busy: 423,
  store_unavailable: 503,
  no_space: 507,
};

/** The errors of the disk layer, so that each is worded once. None names a path outside of what the client named. */
export const diskErrors = {
  unknownTransfer: (id: string): LongJobsError =>
    forTus("unknown_transfer", `Transfer${isTaskId(id) ? ` ${id}` : ""} is unknown or has expired.`, {
      recoveryHint: "Open a new transfer.",
    }),

  offsetMismatch: (id: string, offset: number, cursor: number): LongJobsError =>
    forTus("offset_mismatch", `Transfer ${id} continues at ${cursor}, not at ${offset}.`, {
      retryable: true,
      param: "offset",
      recoveryHint: `Do not resend the file. Send the bytes that start at ${cursor}.`,
      partial: { cursor },
    }),

  pastDeclaredSize: (id: string, sizeBytes: number): LongJobsError =>
    forTus("size_mismatch", `Transfer ${id} was declared with ${sizeBytes} bytes, and more were sent.`, {
      recoveryHint:
        "Commit what is there if the declared size is right; else abort, and open a transfer of the right size.",
      partial: { cursor: sizeBytes },
    }),

  sizeMismatch: (cursor: number, sizeBytes: number): LongJobsError =>
    forTus("size_mismatch", `${cursor} bytes are staged; ${sizeBytes} were declared.`, {
      retryable: true,
      recoveryHint:
        cursor < sizeBytes
          ? `Send the bytes that start at ${cursor}, then commit again.`
          : "Commit with the size of what was sent, or open a new transfer.",
      partial: { cursor },
    }),

  checksumMismatch: (computed: string, declared: string): LongJobsError =>
    forTus("checksum_mismatch", `The staged bytes have the sha256 ${computed}, not ${declared}.`, {
      param: "sha256",
      recoveryHint:
        "Nothing was published and the bytes are kept. Commit again with the right sha256, or restart at offset 0.",
      partial: { sha256: computed },
    }),

  transferBusy: (what: string): LongJobsError =>
    forTus("transfer_busy", `${what} is being written by another call.`, {
      retryable: true,
      recoveryHint: "Wait for the other call to end, ask for the status, and continue from its cursor.",
    }),

  published: (id: string): LongJobsError =>
    forTus("not_active", `Transfer ${id} is published already; its bytes do not change any more.`, {
      recoveryHint: "Open a new transfer.",
    }),

  targetExists: (path: string): LongJobsError =>
    forTus("target_exists", `There is a file ${quote(path)} already.`, {
      param: "path",
      recoveryHint: "Choose another path, or ask for the policy replace or version.",
    }),

  pathNotAllowed: (message: string, recoveryHint?: string, cause?: unknown): LongJobsError =>
    forTus("path_not_allowed", message, {
      param: "path",
      ...(recoveryHint === undefined ? {} : { recoveryHint }),
      cause,
    }),

  sourceChanged: (cause?: unknown): LongJobsError =>
    forTus("source_changed", "The file changed since the transfer was opened.", {
      recoveryHint: "Discard what was read, and open a new transfer for the file as it is now.",
      cause,
    }),

  readOffset: (offset: number, sizeBytes: number): LongJobsError =>
    forTus("offset_mismatch", `The file has ${sizeBytes} bytes; it cannot be read from ${offset}.`, {
      param: "offset",
      recoveryHint: `Read from a whole number between 0 and ${sizeBytes}.`,
      partial: { cursor: sizeBytes },
    }),

  corrupt: (id: string, cause: unknown): LongJobsError =>
    forTus("record_corrupt", `What was declared about transfer ${id} cannot be read any more.`, { cause }),

  /** A failed operation of the disk itself; `cursor` is what is staged now. */
  failed: (what: string, cause: unknown, cursor?: number): LongJobsError => {
    const partial = cursor === undefined ? {} : { partial: { cursor } };
    const errno = errnoOf(cause);
    if (errno === "ENOSPC" || errno === "EDQUOT") {
      return forTus("no_space", `The disk is full: ${what}.`, {
        retryable: true,
        recoveryHint: "Nothing that was stored is lost. Continue from the cursor once there is space.",
        ...partial,
        cause,
      });
    }
    if (errno === "EFBIG") {
      return forTus("file_too_large", `The disk holds no file of that size: ${what}.`, { ...partial, cause });
    }
    return forTus("store_unavailable", `The disk failed (${errno ?? "no errno"}): ${what}.`, {
      retryable: true,
      ...partial,
      cause,
    });
  },
};

/** The error for a caller: one of the system becomes {@link diskErrors.failed}; every other is what it is. */
export function toDiskError(what: string, error: unknown, cursor?: number): unknown {
  const isOfSystem = error instanceof Error && "syscall" in error;
  return isOfSystem ? diskErrors.failed(what, error, cursor) : error;
}

function forTus(code: string, message: string, options: LongJobsErrorOptions): LongJobsError {
  const error = new LongJobsError(code, message, options);
  return Object.assign(error, { status_code: tusStatus[code] ?? 400, body: `${JSON.stringify(error)}\n` });
}

/** A name as a person may see it: no control characters, not longer than a line. */
export function quote(name: unknown): string {
  const text = String(name);
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}
