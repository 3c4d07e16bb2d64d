import { crc32 } from "node:zlib";
import { MAX_EPOCH } from "./log-segment.ts";
import type { ProcessIdentity } from "./process-identity.ts";
import type { CleanEnd } from "./replay-log.ts";

/** What a lock file says. */
export interface LockContent {
  readonly state: "held" | "closed";
  readonly holder: ProcessIdentity;
  /** The directory, as the holder names it; empty where it is too long to be told. */
  readonly dir: string;
  /** Tells this ownership from every other. */
  readonly nonce: string;
  /** ISO 8601: when the holder opened the directory. */
  readonly since: string;
  /** Rises while the holder lives. */
  readonly counter: number;
  /** Where the log ended, in a file that was closed. */
  readonly end?: CleanEnd;
}

/** Always the same length, so that a heartbeat replaces the whole content in place. */
export const LOCK_BYTES = 1024;

const CHECKSUM_LENGTH = 9;
const TEXT_BYTES = LOCK_BYTES - CHECKSUM_LENGTH;

/** The name of the lock of one epoch. */
export function lockName(epoch: number): string {
  return `lock.${epoch}`;
}

/** The epoch that a file name stands for, if it is a lock. */
export function parseLockName(name: string): number | undefined {
  const match = /^lock\.([1-9]\d{0,14})$/.exec(name);
  const epoch = Number(match?.[1] ?? 0);
  return isEpoch(epoch) ? epoch : undefined;
}

/** Whether an owner can have had this epoch: beyond, the keys of segments would leave the safe integers. */
export function isEpoch(epoch: number): boolean {
  return epoch > 0 && epoch < MAX_EPOCH;
}

/** One line of JSON that a person can read, padded, with its checksum at the end. */
export function encodeLock(content: LockContent): Buffer {
  const block = Buffer.alloc(LOCK_BYTES, " ");
  const text = JSON.stringify(content);
  const isTooLong = Buffer.byteLength(text) > TEXT_BYTES;
  block.write(isTooLong ? JSON.stringify({ ...content, dir: "" }) : text);
  block.write(`${checksum(block)}\n`, TEXT_BYTES);
  return block;
}

/** The content, or `undefined` when the file is not complete, or torn by a write that is going on. */
export function decodeLock(block: Buffer): LockContent | undefined {
  if (block.length !== LOCK_BYTES) return undefined;
  if (block.toString("latin1", TEXT_BYTES) !== `${checksum(block)}\n`) return undefined;
  try {
    return JSON.parse(block.toString("utf8", 0, TEXT_BYTES)) as LockContent;
  } catch {
    return undefined; // Whole, but no lock: whoever reads it waits as for one that is torn.
  }
}

function checksum(block: Buffer): string {
  return crc32(block.subarray(0, TEXT_BYTES)).toString(16).padStart(8, "0");
}
