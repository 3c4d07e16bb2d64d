import { isLongJobsError } from "@longjobs/core";
import type { SweptTransfers } from "./files.ts";
import { isOrphan, type TransferContext } from "./transfer-context.ts";
import { isTransfer } from "./transfer-record.ts";

/**
 * Deletes what has expired: staged bytes, records, what is counted for them, and the copies that a crash left beside a
 * target. Bytes under a writer are never touched: a live writer keeps its record alive, on whatever instance.
 */
export async function sweepTransfers(context: TransferContext): Promise<SweptTransfers> {
  const staged = await sweepStaged(context);
  await context.roots.sweepTemporaries();
  const records = await context.store.sweep();
  await context.ledger.sweep();
  return { staged, records };
}

/** Staged bytes without an open record are garbage: a record is written before its bytes, and ended before they go. */
async function sweepStaged(context: TransferContext): Promise<number> {
  const { locks, staging } = context;
  let swept = 0;
  for await (const id of staging.list()) {
    if (locks.isHeld(id) || (await isWanted(id, context))) continue;
    try {
      await staging.discard(id);
      swept += 1;
    } catch (error) {
      // Somebody writes to it at this very moment: the next sweep looks again.
      if (!isLongJobsError(error, "transfer_busy")) throw error;
    }
  }
  return swept;
}

async function isWanted(id: string, context: TransferContext): Promise<boolean> {
  const record = await context.store.get(id);
  if (record === undefined || record.kind === undefined) return false;
  // What a newer version wrote is not ours to judge.
  if (!isTransfer(record)) return true;
  if (record.status !== "working") return false;
  if (!(await isOrphan(record, context))) return true;
  // A spilled result goes with its task: the record has no time left either.
  await context.store.update(id, { ttlMs: 0 }, record.version);
  return false;
}
