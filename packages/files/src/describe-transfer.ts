import type { JsonObject } from "@longjobs/core";
import type { TransferUrls } from "./http/transfer-urls.ts";
import { expiresAt, type TransferContext } from "./transfer-context.ts";
import { isDownload, isUpload, publishedFile } from "./transfer-record.ts";
import type { DownloadState, TransferRecord, UploadState } from "./transfer-record.ts";

/** A transfer as clients see it: made from its record by name, so that nothing else leaves the server. */
export interface TransferView {
  readonly transferId: string;
  readonly direction: "upload" | "download";
  readonly status: "open" | "committed" | "aborted";
  readonly root?: string;
  /** Of a committed upload: where the file is, which with `ifExists: "version"` may differ from what was asked for. */
  readonly path?: string;
  /** Of an open upload: the bytes that are safely staged, which is where the next chunk starts. */
  readonly offset?: number;
  /** `null` while it is not known. */
  readonly size: number | null;
  readonly sha256?: string;
  readonly mediaType?: string;
  /** The most bytes of one chunk by tool. */
  readonly chunkBytes?: number;
  /** TUS 1.0. */
  readonly uploadUrl?: string;
  /** GET, with ranges. */
  readonly downloadUrl?: string;
  /** ISO 8601; moves while the transfer is used. */
  readonly expiresAt?: string;
  /** While the digest of a large file is being computed. */
  readonly digest?: { readonly doneBytes: number; readonly totalBytes: number };
}

/** A transfer as it is now. Waits for no writer. */
export async function describeTransfer(
  record: TransferRecord,
  context: TransferContext,
  urls: TransferUrls | undefined,
): Promise<TransferView> {
  if (isUpload(record)) return describeUpload(record, context, urls);
  if (isDownload(record)) return describeDownload(record, context, urls);
  throw new TypeError("A transfer goes up or down.");
}

/** The same as plain JSON, for a tool result. */
export function toJson(view: TransferView): JsonObject {
  return { ...view };
}

async function describeUpload(
  record: TransferRecord<UploadState>,
  context: TransferContext,
  urls: TransferUrls | undefined,
): Promise<TransferView> {
  const { taskId: transferId, data } = record;
  const file = publishedFile(record);
  if (file !== undefined) return { transferId, direction: "upload", status: "committed", ...file };
  const base = { transferId, direction: "upload", ...data.location, size: data.sizeBytes } as const;
  if (record.status !== "working") return { ...base, status: "aborted" };
  return {
    ...base,
    status: "open",
    offset: (await context.staging.stagedBytes(transferId)) ?? 0,
    ...(data.sha256 === undefined ? {} : { sha256: data.sha256 }),
    ...(context.staging.abilities.smallWrites ? { chunkBytes: context.maxWriteBytes } : {}),
    ...(urls === undefined ? {} : { uploadUrl: await urls.urlOf(record) }),
    ...expiry(record),
  };
}

async function describeDownload(
  record: TransferRecord<DownloadState>,
  context: TransferContext,
  urls: TransferUrls | undefined,
): Promise<TransferView> {
  const { taskId: transferId, data } = record;
  const { source, name, mediaType, pin } = data;
  const place = "location" in source ? source.location : { path: name };
  const base = { transferId, direction: "download", ...place, size: pin.sizeBytes, mediaType } as const;
  if (record.status !== "working") return { ...base, status: "aborted" };
  const progress = context.digests.progressOf(transferId);
  const computing =
    data.sha256 === undefined && progress !== undefined
      ? { digest: { doneBytes: progress.doneBytes, totalBytes: pin.sizeBytes } }
      : {};
  return {
    ...base,
    status: "open",
    chunkBytes: context.maxReadBytes,
    ...(data.sha256 === undefined ? computing : { sha256: data.sha256 }),
    ...(urls === undefined ? {} : { downloadUrl: await urls.urlOf(record) }),
    ...expiry(record),
  };
}

function expiry(record: TransferRecord): { readonly expiresAt?: string } {
  const at = expiresAt(record);
  return at === undefined ? {} : { expiresAt: at };
}
