import { createHash, timingSafeEqual } from "node:crypto";
import { reportBackgroundError, type TaskPatch } from "@longjobs/core";
import { parseDigest } from "./parse-digest.ts";
import { assertSize } from "./open-transfer.ts";
import {
  asTransferError,
  assertOpen,
  assertVisible,
  readTransfer,
  type Scope,
  type TransferContext,
} from "./transfer-context.ts";
import { transferErrors } from "./transfer-errors.ts";
import { isUpload, type TransferRecord, type UploadState } from "./transfer-record.ts";
import type { TransferWriter } from "./transfer-writers.ts";

/** One chunk of a tool. */
export interface ChunkToWrite {
  readonly offset: number;
  readonly bytes: Uint8Array;
  /** Of this chunk. */
  readonly sha256?: string | undefined;
}

/** An upload that is being written. */
export interface WrittenUpload {
  readonly record: TransferRecord<UploadState>;
  readonly stagedBytes: number;
}

/** Room is asked for in steps of this size while a stream of unknown length comes in. */
const quotaStepBytes = 8 * 1024 * 1024;

/** An open upload of this caller. @throws `unknown_transfer`, `not_active` */
export async function writableUpload(
  transferId: unknown,
  scope: Scope,
  context: TransferContext,
): Promise<TransferRecord<UploadState>> {
  const record = await readTransfer(transferId, scope, context);
  assertWritable(record, scope);
  return record;
}

/** Takes the right to write to an upload. @throws `transfer_busy`, and what {@link writableUpload} does. */
export async function takeUpload(
  transferId: string,
  caller: "tool" | "request",
  scope: Scope,
  { writers }: TransferContext,
): Promise<TransferWriter> {
  return asTransferError(() => writers.take(transferId, caller, (record) => assertWritable(record, scope)));
}

/**
 * Stages one chunk. The last chunk may come again with the same bytes, as it does when its acknowledgement was lost;
 * anything else that does not start where the staged bytes end is `offset_mismatch`. What is refused stores nothing.
 */
export async function writeChunk(
  transferId: unknown,
  chunk: ChunkToWrite,
  scope: Scope,
  context: TransferContext,
): Promise<WrittenUpload> {
  const { taskId } = await writableUpload(transferId, scope, context);
  const sha256 = parseDigest(chunk.sha256);
  const writer = await takeUpload(taskId, "tool", scope, context);
  let change: Partial<UploadState> = {};
  let stagedBytes: number;
  try {
    const before = await ensureStaged(taskId, stateOf(writer), context);
    const isRepeat = await assertOffset(taskId, before, chunk, stateOf(writer), context);
    if (sha256 !== undefined && sha256 !== digestOf(chunk.bytes)) throw transferErrors.chunkDigest(before);
    if (isRepeat) stagedBytes = before;
    else {
      await assertRoom(writer, before + chunk.bytes.length, before, context);
      await writer.beforeBytes();
      stagedBytes = await writer.stage(context.staging.write(taskId, before, once(chunk.bytes)));
      change = { lastChunkAt: before };
    }
  } catch (error) {
    await endAfterError(writer, context);
    throw error;
  }
  const record = await asTransferError(() => writer.end((found) => changed(found, change)));
  return { record: record as TransferRecord<UploadState>, stagedBytes };
}

/**
 * Stages a stream at `offset`, which is where the staged bytes end, under a writer that the caller ends. It stops, with
 * what has been staged, when the writer has to stop.
 */
export async function writeStream(
  writer: TransferWriter,
  stream: AsyncIterable<Uint8Array>,
  offset: number,
  context: TransferContext,
): Promise<number> {
  const { taskId } = writer.record;
  const { sizeBytes } = stateOf(writer);
  const guarded = guardStream(writer, stream, offset, context);
  const stagedBytes = await writer.stage(context.staging.write(taskId, offset, guarded));
  if (sizeBytes === null) await countBytes(writer, stagedBytes, context);
  return stagedBytes;
}

/** Ends a writer whose work failed: the caller hears of that failure, and the listener of one that comes on top. */
export async function endAfterError(writer: TransferWriter, { onError }: TransferContext): Promise<void> {
  await writer.end().catch((second: unknown) => reportBackgroundError(second, onError));
}

/** Declares the size of an upload that began without one. @throws `size_mismatch`, `file_too_large`, `quota_exceeded` */
export async function declareSize(
  writer: TransferWriter,
  sizeBytes: number,
  context: TransferContext,
): Promise<void> {
  const { taskId } = writer.record;
  assertSize(sizeBytes, context.maxFileBytes);
  const staged = await ensureStaged(taskId, stateOf(writer), context);
  if (stateOf(writer).sizeBytes !== null || staged > sizeBytes)
    throw transferErrors.pastSize(staged, sizeBytes);
  await countBytes(writer, sizeBytes, context);
  await context.staging.declareSize(taskId, sizeBytes);
  await writer.update((found) => changed(found, { sizeBytes, sizedLater: true }));
}

/** What is staged now. An upload whose opening was cut short is staged anew, at 0. */
export async function ensureStaged(
  taskId: string,
  state: UploadState,
  { staging }: TransferContext,
): Promise<number> {
  const staged = await staging.stagedBytes(taskId);
  if (staged !== undefined) return staged;
  await staging.create(taskId, state.sizeBytes);
  return 0;
}

/** The state of the upload that a writer holds. */
export function stateOf({ record }: TransferWriter): UploadState {
  return record.data as UploadState;
}

function assertWritable(record: TransferRecord, scope: Scope): asserts record is TransferRecord<UploadState> {
  assertVisible(record, scope);
  if (!isUpload(record)) throw transferErrors.wrongDirection("download");
  assertOpen(record);
}

/** Resolves to true for the last chunk once more. */
async function assertOffset(
  taskId: string,
  staged: number,
  { offset, bytes }: ChunkToWrite,
  { lastChunkAt = offset }: UploadState,
  context: TransferContext,
): Promise<boolean> {
  if (offset !== staged) {
    const isTail =
      Number.isSafeInteger(offset) && offset >= 0 && offset < staged && offset + bytes.length === staged;
    if (isTail && lastChunkAt === offset && (await endsWith(taskId, offset, bytes, context))) return true;
    throw transferErrors.offset(staged);
  }
  return false;
}

/** Whether these very bytes are staged from `offset` to the end. A store that cannot be read cannot tell. */
async function endsWith(
  taskId: string,
  offset: number,
  bytes: Uint8Array,
  { staging }: TransferContext,
): Promise<boolean> {
  const staged = staging.read(taskId, offset);
  if (staged === undefined) return false;
  let compared = 0;
  for await (const piece of staged) {
    const expected = bytes.subarray(compared, compared + piece.length);
    if (expected.length !== piece.length || !timingSafeEqual(expected, piece)) return false;
    compared += piece.length;
  }
  return compared === bytes.length;
}

/** Each piece goes through here before it is staged. */
async function* guardStream(
  writer: TransferWriter,
  stream: AsyncIterable<Uint8Array>,
  offset: number,
  context: TransferContext,
): AsyncIterable<Uint8Array> {
  let end = offset;
  let room = offset;
  for await (const piece of stream) {
    if (writer.signal.aborted) return;
    await writer.beforeBytes();
    end += piece.length;
    if (end > room) {
      await assertRoom(writer, end, end - piece.length, context);
      room = stateOf(writer).sizeBytes ?? (await reserve(writer, end, context));
    }
    yield piece;
  }
}

/** Before bytes are stored: is there room up to `end`? */
async function assertRoom(
  writer: TransferWriter,
  end: number,
  staged: number,
  context: TransferContext,
): Promise<void> {
  const { maxFileBytes: ownMax, sizeBytes } = stateOf(writer);
  const maxFileBytes = smallerOf(ownMax ?? null, context.maxFileBytes);
  if (sizeBytes !== null) {
    if (end > sizeBytes) throw transferErrors.pastSize(staged, sizeBytes);
    return;
  }
  if (maxFileBytes !== null && end > maxFileBytes) throw transferErrors.tooLarge(maxFileBytes);
  await countBytes(writer, end, context);
}

function smallerOf(left: number | null, right: number | null): number | null {
  return left === null || right === null ? (left ?? right) : Math.min(left, right);
}

/** Counts a step more than is needed, where the quota has it, and resolves to where the next one begins. */
async function reserve(writer: TransferWriter, end: number, context: TransferContext): Promise<number> {
  try {
    await countBytes(writer, end + quotaStepBytes, context);
    return end + quotaStepBytes;
  } catch {
    // The step is a convenience: what is needed was counted before, and the next piece asks for itself.
    return end;
  }
}

async function countBytes(writer: TransferWriter, bytes: number, context: TransferContext): Promise<void> {
  const { record } = writer;
  await context.ledger.count(record.scope, record.taskId, {
    bytes,
    isFile: true,
    isOpen: true,
    sinceMs: Date.parse(record.createdAt),
    untilMs: Date.parse(record.createdAt) + Math.max(context.maxLifetimeMs, record.ttlMs ?? 0),
  });
}

function changed({ data }: TransferRecord, change: Partial<UploadState>): TaskPatch {
  if (Object.keys(change).length === 0) return {};
  return { data: { ...data, ...change } };
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield bytes;
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
