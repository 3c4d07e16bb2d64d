import {
  isLongJobsError,
  isTaskId,
  type ErrorListener,
  type TaskStore,
  type TaskWriter,
} from "@longjobs/core";
import type { Roots } from "./disk/roots.ts";
import type { DigestWork } from "./digest-work.ts";
import type { QuotaLedger } from "./quota-ledger.ts";
import type { Staging } from "./staging.ts";
import { transferErrors } from "./transfer-errors.ts";
import { expiresAtMs, type ExpiryOptions } from "./transfer-expiry.ts";
import type { TransferLocks } from "./transfer-locks.ts";
import type { TransferRecord, TransferState } from "./transfer-record.ts";
import { asTransfer, type TransferWriters } from "./transfer-writers.ts";

/** What the operations on transfers share. */
export interface TransferContext extends ExpiryOptions {
  readonly store: TaskStore;
  readonly writer: TaskWriter;
  readonly writers: TransferWriters;
  readonly locks: TransferLocks;
  readonly ledger: QuotaLedger;
  readonly staging: Staging;
  readonly roots: Roots;
  readonly digests: DigestWork;
  readonly retentionMs: number;
  readonly maxFileBytes: number | null;
  /** The most bytes of one `file_transfer_write`, and of one `file_transfer_read`. */
  readonly maxWriteBytes: number;
  readonly maxReadBytes: number;
  /** The most bytes of a resource that is read at once. */
  readonly maxResourceBytes: number;
  /** Aborted when the process stops serving transfers. */
  readonly closing: AbortSignal;
  readonly now: () => number;
  readonly random: () => number;
  readonly randomId: () => string;
  readonly onError: ErrorListener | undefined;
}

/** Whose call it is; equal or nothing. */
export type Scope = string | undefined;

/**
 * The record of a transfer that the caller may see. A hostile id never reaches the store.
 *
 * @throws `unknown_transfer`, the same for expired, foreign and malformed ids.
 */
export async function readTransfer(
  transferId: unknown,
  scope: Scope,
  context: Pick<TransferContext, "store" | "writer">,
): Promise<TransferRecord> {
  if (!isTaskId(transferId)) throw transferErrors.unknown();
  const record = await asTransferError(() => context.writer.read(transferId));
  assertVisible(record as TransferRecord, scope);
  const transfer = asTransfer(record);
  if (await isOrphan(transfer, context)) throw transferErrors.unknown();
  return transfer;
}

/** A spilled result is gone with its task, even before a sweep has deleted it. */
export async function isOrphan(
  { data }: TransferRecord,
  { store }: Pick<TransferContext, "store">,
): Promise<boolean> {
  const taskId = taskIdOf(data);
  return taskId !== undefined && (await store.get(taskId)) === undefined;
}

/** The task that a spilled result belongs to. */
export function taskIdOf(state: TransferState): string | undefined {
  return state.direction === "download" && "taskId" in state.source ? state.source.taskId : undefined;
}

/** @throws `unknown_transfer` for somebody else's transfer. */
export function assertVisible(record: TransferRecord, scope: Scope): void {
  if (record.scope !== scope) throw transferErrors.unknown();
}

/** @throws `not_active` when the transfer has ended. */
export function assertOpen(record: TransferRecord): void {
  if (record.status === "completed") throw transferErrors.ended("committed");
  if (record.status !== "working") throw transferErrors.ended("aborted");
}

/** Runs something that writes records; what a store calls an unknown task is an unknown transfer here. */
export async function asTransferError<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (isLongJobsError(error, "unknown_task")) throw transferErrors.unknown();
    throw error;
  }
}

/** When an open transfer expires, as ISO 8601. */
export function expiresAt(record: TransferRecord): string | undefined {
  const atMs = expiresAtMs(record);
  return atMs === undefined ? undefined : new Date(atMs).toISOString();
}
