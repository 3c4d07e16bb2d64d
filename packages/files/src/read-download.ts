import { createHash } from "node:crypto";
import { PinnedFile } from "./disk/pinned-file.ts";
import {
  asTransferError,
  assertOpen,
  readTransfer,
  type Scope,
  type TransferContext,
} from "./transfer-context.ts";
import { transferErrors } from "./transfer-errors.ts";
import { elapsedOf, idleTtlMs } from "./transfer-expiry.ts";
import { isDownload, type DownloadState, type TransferRecord } from "./transfer-record.ts";

/** A piece of a download. */
export interface ReadChunk {
  readonly record: TransferRecord<DownloadState>;
  readonly offset: number;
  readonly bytes: Uint8Array;
  /** Of the whole file. */
  readonly totalBytes: number;
  /** Of this piece. */
  readonly sha256: string;
}

/** Files up to this size are hashed while the download is opened; larger ones in the background. */
const hashAtOnceBytes = 16 * 1024 * 1024;

/** Unless the caller says otherwise: what a model can still look at. */
const defaultReadBytes = 64 * 1024;

/** An open download of this caller. @throws `unknown_transfer`, `not_active` */
export async function readableDownload(
  transferId: unknown,
  scope: Scope,
  context: TransferContext,
): Promise<TransferRecord<DownloadState>> {
  const record = await readTransfer(transferId, scope, context);
  if (!isDownload(record)) throw transferErrors.wrongDirection("upload");
  assertOpen(record);
  return record;
}

/** The file of a download as it was pinned. @throws `source_changed` */
export async function openSource(
  { taskId, data }: TransferRecord<DownloadState>,
  { roots, staging }: TransferContext,
): Promise<PinnedFile> {
  const { pin, source } = data;
  if ("location" in source) return roots.openSource(source.location, { pin });
  if (staging.local === undefined) throw transferErrors.unknown();
  return PinnedFile.open(await staging.local.openStaged(taskId), { pin });
}

/** Reads one piece. At the end it is empty; an offset beyond it is `offset_mismatch`. */
export async function readChunk(
  transferId: unknown,
  wish: { readonly offset: number; readonly length?: number | undefined },
  scope: Scope,
  context: TransferContext,
): Promise<ReadChunk> {
  const record = await readableDownload(transferId, scope, context);
  const { offset, length = Math.min(defaultReadBytes, context.maxReadBytes) } = wish;
  const totalBytes = record.data.pin.sizeBytes;
  if (!Number.isSafeInteger(offset) || offset < 0 || offset > totalBytes)
    throw transferErrors.readOffset(totalBytes);
  if (!Number.isSafeInteger(length) || length < 1 || length > context.maxReadBytes)
    throw transferErrors.invalidLength(context.maxReadBytes);
  await using file = await openSource(record, context);
  const bytes = await file.read(offset, length);
  const kept = await keepAlive(record, context);
  if (kept.data.sha256 === undefined) startDigest(kept, context);
  return {
    record: kept,
    offset,
    bytes,
    totalBytes,
    sha256: createHash("sha256").update(bytes).digest("hex"),
  };
}

/** The digest of a file that is small enough to hash while a client waits. */
export async function digestAtOnce(file: PinnedFile): Promise<string | undefined> {
  return file.sizeBytes > hashAtOnceBytes ? undefined : file.digest();
}

/** Computes the digest of the whole in the background, once, and keeps it with the transfer. */
export function startDigest(record: TransferRecord<DownloadState>, context: TransferContext): void {
  const { taskId } = record;
  context.digests.start(
    taskId,
    () => openSource(record, context),
    async (sha256) => {
      await context.writer.write(taskId, (found) => {
        const state = found.data as unknown as DownloadState;
        return state.sha256 === undefined ? { data: { ...state, sha256 } } : undefined;
      });
    },
  );
}

/**
 * Moves the expiry of a download that is used. Only when half of the time has gone: a read of a small piece should not
 * cost a write.
 */
export async function keepAlive(
  record: TransferRecord<DownloadState>,
  context: TransferContext,
): Promise<TransferRecord<DownloadState>> {
  const elapsedMs = elapsedOf(record, context.now());
  const ttlMs = idleTtlMs(elapsedMs, context);
  if (record.ttlMs === null || ttlMs - record.ttlMs <= context.idleMs / 2) return record;
  return asTransferError(() =>
    context.writer.write(record.taskId, (found) =>
      (found.ttlMs ?? Infinity) < ttlMs ? { ttlMs } : undefined,
    ),
  ) as Promise<TransferRecord<DownloadState>>;
}
