import { LongJobsError } from "@longjobs/core";

/** The errors of transfers, each worded once. None names an id: a foreign transfer answers to the letter like an unknown one. */
export const transferErrors = {
  unknown: (): LongJobsError =>
    new LongJobsError("unknown_transfer", "There is no such transfer.", {
      param: "transferId",
      recoveryHint: "Check the transferId. If it is right the transfer has expired: open a new one.",
    }),

  ended: (how: "committed" | "aborted"): LongJobsError =>
    new LongJobsError("not_active", `The transfer was ${how}; nothing can change it.`, {
      recoveryHint:
        how === "committed" ? "The file is published: nothing is left to do." : "Open a new transfer.",
    }),

  wrongDirection: (direction: "upload" | "download"): LongJobsError =>
    new LongJobsError(
      "not_active",
      `This transfer is ${direction === "upload" ? "an upload" : "a download"}.`,
      {
        recoveryHint:
          direction === "upload"
            ? "Write to it and commit it."
            : "Read from it; there is nothing to write or commit.",
      },
    ),

  ofTask: (): LongJobsError =>
    new LongJobsError("not_active", "This is the result of a task; it goes with the task.", {
      recoveryHint: "Leave it.",
    }),

  busy: (): LongJobsError =>
    new LongJobsError("transfer_busy", "Somebody else is writing to this transfer.", {
      retryable: true,
      recoveryHint: "Wait a few seconds, get the status, and go on at its offset.",
    }),

  offset: (cursor: number): LongJobsError =>
    new LongJobsError("offset_mismatch", `The next chunk starts at ${cursor}.`, {
      param: "offset",
      recoveryHint: `Do not resend the file. Send the chunk that starts at ${cursor}.`,
      partial: { cursor },
    }),

  readOffset: (total: number): LongJobsError =>
    new LongJobsError(
      "offset_mismatch",
      `The file has ${total} bytes; offset must be a whole number from 0 to ${total}.`,
      {
        param: "offset",
        recoveryHint: "Read from an offset inside of the file.",
        partial: { total },
      },
    ),

  chunkTooLarge: (param: string, sizeBytes: number, maxBytes: number): LongJobsError =>
    new LongJobsError(
      "chunk_too_large",
      `The chunk has ${sizeBytes} bytes; one message takes at most ${maxBytes}.`,
      {
        param,
        recoveryHint: `Use chunks of at most ${maxBytes} bytes.`,
        partial: { maxBytes },
      },
    ),

  invalidLength: (maxBytes: number): LongJobsError =>
    new LongJobsError("chunk_too_large", `length must be a whole number from 1 to ${maxBytes}.`, {
      param: "length",
      recoveryHint: `Read at most ${maxBytes} bytes at a time.`,
      partial: { maxBytes },
    }),

  pastSize: (cursor: number, sizeBytes: number): LongJobsError =>
    new LongJobsError(
      "size_mismatch",
      `The chunk goes past the declared size of ${sizeBytes} bytes; nothing of it was stored.`,
      {
        param: "data",
        recoveryHint: `Send only the bytes from ${cursor} to ${sizeBytes}, or abort and open a transfer with the right size.`,
        partial: { cursor, size: sizeBytes },
      },
    ),

  invalidSize: (): LongJobsError =>
    new LongJobsError("size_mismatch", "size must be a whole number of bytes, 0 or more.", {
      param: "size",
      recoveryHint: "Leave size out if it is not known.",
    }),

  incomplete: (cursor: number, sizeBytes: number): LongJobsError =>
    new LongJobsError(
      "size_mismatch",
      `${cursor} of ${sizeBytes} bytes are there; the transfer stays open.`,
      {
        recoveryHint: `Send the chunk that starts at ${cursor}, then commit again.`,
        partial: { cursor, size: sizeBytes },
      },
    ),

  tooLarge: (maxBytes: number): LongJobsError =>
    new LongJobsError("file_too_large", `This server takes files of at most ${maxBytes} bytes.`, {
      param: "size",
      recoveryHint: "Send a smaller file.",
      partial: { maxBytes },
    }),

  digestNeeded: (): LongJobsError =>
    new LongJobsError(
      "checksum_mismatch",
      "A file is published only when its sha256 matches, and none was given.",
      {
        param: "sha256",
        recoveryHint: "Commit again with the sha256 of the whole file, as 64 hexadecimal digits.",
      },
    ),

  invalidDigest: (): LongJobsError =>
    new LongJobsError("checksum_mismatch", "sha256 must be 64 hexadecimal digits.", {
      param: "sha256",
      recoveryHint: "Pass the digest in hexadecimal.",
    }),

  otherDigest: (): LongJobsError =>
    new LongJobsError(
      "checksum_mismatch",
      "This is not the sha256 that was declared when the transfer was opened.",
      {
        param: "sha256",
        recoveryHint:
          "Commit without sha256, or with the declared one. If the declared one is wrong, abort and open a new transfer.",
      },
    ),

  chunkDigest: (cursor: number): LongJobsError =>
    new LongJobsError(
      "checksum_mismatch",
      "The sha256 of the chunk does not match; nothing of it was stored.",
      {
        param: "sha256",
        recoveryHint: `Send the chunk that starts at ${cursor} again.`,
        partial: { cursor },
      },
    ),

  invalidBase64: (): LongJobsError =>
    new LongJobsError(
      "invalid_base64",
      "data is not base64: standard alphabet, padded, without white space.",
      {
        param: "data",
        recoveryHint: "Encode the bytes of this chunk anew.",
      },
    ),

  smallWrites: (uploadUrl: string | undefined): LongJobsError =>
    new LongJobsError("invalid_request", "This server cannot store small chunks; upload over HTTP.", {
      recoveryHint:
        uploadUrl === undefined
          ? "Tell the user that this server takes no uploads by tool."
          : "Upload the file to uploadUrl with a TUS client, then commit.",
      ...(uploadUrl === undefined ? {} : { partial: { uploadUrl } }),
    }),

  quota: (what: string, used: number, limit: number): LongJobsError =>
    new LongJobsError("quota_exceeded", `${what}: ${used} in use, ${limit} allowed.`, {
      retryable: true,
      recoveryHint: "Commit or abort transfers that are open, or wait until older ones expire.",
      partial: { used, limit },
    }),

  leaseLost: (): LongJobsError =>
    new LongJobsError("transfer_busy", "Another instance of the server has taken over this transfer.", {
      retryable: true,
      recoveryHint: "Get the status, and go on at its offset.",
    }),

  shutdown: (): LongJobsError =>
    new LongJobsError("shutdown", "This server is shutting down.", {
      retryable: true,
      recoveryHint: "Get the status in a moment, and go on at its offset.",
    }),

  noPath: (): LongJobsError =>
    new LongJobsError("path_not_allowed", "There is no file to read at this path.", {
      param: "path",
      recoveryHint: "Check the root and the path.",
    }),

  malformed: (param: string, message: string): LongJobsError =>
    new LongJobsError("invalid_request", message, { param, recoveryHint: "Mend the request." }),
} as const;
