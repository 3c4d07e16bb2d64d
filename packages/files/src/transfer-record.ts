import type { JsonValue, TaskRecord } from "@longjobs/core";
import type { FilePin } from "./disk/pinned-file.ts";
import type { PublishNote, PublishPolicy } from "./disk/publish.ts";
import type { FileLocation } from "./disk/roots.ts";

/** The `kind` of a record that is a transfer: no task call sees it. */
export const transferKind = "transfer";

/** Goes up when older code could not read what newer code writes. */
const stateFormat = 1;

/** Bytes on their way in. */
export type UploadState = {
  readonly format: typeof stateFormat;
  readonly direction: "upload";
  readonly location: FileLocation;
  readonly ifExists: PublishPolicy;
  /** The declared size; `null` while it is not known. */
  readonly sizeBytes: number | null;
  /** The size was declared after the opening: the URL was signed without it. */
  readonly sizedLater?: true;
  /** The declared digest of the whole. */
  readonly sha256?: string;
  /** Publish as soon as all bytes are staged: for clients that cannot call the commit tool. */
  readonly commitOnLastByte?: true;
  /** The largest that it may become, where that is less than what the server takes. */
  readonly maxFileBytes?: number;
  /** `Upload-Metadata` as the client sent it. */
  readonly metadata?: string;
  /** Where the last chunk of a tool began: only that one may be repeated. */
  readonly lastChunkAt?: number;
  /** Which file a commit was about to name, so that a repeated commit knows its own file again. */
  readonly prepared?: PublishNote;
};

/** A file on its way out. */
export type DownloadState = {
  readonly format: typeof stateFormat;
  readonly direction: "download";
  /** Where it is, or the task whose spilled result it is. */
  readonly source: FileSource;
  readonly name: string;
  readonly mediaType: string;
  readonly pin: FilePin;
  /** Once it has been computed. */
  readonly sha256?: string;
};

/** What a download reads: a file in a root, or staged bytes that belong to a task. */
export type FileSource = { readonly location: FileLocation } | { readonly taskId: string };

/** The `data` of a transfer record. */
export type TransferState = UploadState | DownloadState;

/** What a commit published: the `result` of the record. */
export type PublishedFile = {
  readonly root: string;
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
};

/** A transfer record whose state has been looked at. */
export type TransferRecord<State extends TransferState = TransferState> = Omit<TaskRecord, "data"> & {
  readonly data: State;
};

/** The state of a transfer that begins. */
export function newUploadState(state: Omit<UploadState, "format" | "direction">): UploadState {
  return { format: stateFormat, direction: "upload", ...state };
}

/** The state of a download that begins. */
export function newDownloadState(state: Omit<DownloadState, "format" | "direction">): DownloadState {
  return { format: stateFormat, direction: "download", ...state };
}

/** True for a record of a transfer that this version can read. */
export function isTransfer(record: TaskRecord): record is TransferRecord {
  const state = record.data as { readonly format?: JsonValue } | null | undefined;
  return record.kind === transferKind && state?.format === stateFormat;
}

/** True for bytes on their way in. */
export function isUpload(record: TransferRecord): record is TransferRecord<UploadState> {
  return record.data.direction === "upload";
}

/** True for a file on its way out. */
export function isDownload(record: TransferRecord): record is TransferRecord<DownloadState> {
  return record.data.direction === "download";
}

/** What the file of a commit is, on the record of a committed upload. */
export function publishedFile(record: TransferRecord): PublishedFile | undefined {
  return record.status === "completed" ? (record.result as PublishedFile | undefined) : undefined;
}
