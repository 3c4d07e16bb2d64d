import { crc32 } from "node:zlib";
import type { ProcessIdentity } from "./process-identity.ts";
import type { CleanEnd } from "./replay-log.ts";

/** What a lock file says. */
export interface LockContent {
  readonly state: "held" | "closed";
  readonly holder: ProcessIdentity;
  /** The directory, as the holder names it. */
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

/** The name of the lock of one epoch. */
export function lockName(epoch: number): string {
  return `lock.${epoch}`;
}

/** The epoch that a file name stands for, if it is a lock. */
export function parseLockName(name: string): number | undefined {
  const match = /^lock\.([1-9]\d{0,14})$/.exec(name);
  return match === null ? undefined : Number(match[1]);
}

/** One line of JSON that a person can read, padded, with its checksum at the end. */
export function encodeLock(content: LockContent): Buffer {
  const block = Buffer.alloc(LOCK_BYTES, " ");
  block.write(JSON.stringify(content));
  block.write(`${checksum(block)}\n`, LOCK_BYTES - CHECKSUM_LENGTH);
  return block;
}

/** The content, or `undefined` when the file is not complete, or torn by a write that is going on. */
export function decodeLock(block: Buffer): LockContent | undefined {
  if (block.length !== LOCK_BYTES) return undefined;
  if (block.toString("latin1", LOCK_BYTES - CHECKSUM_LENGTH) !== `${checksum(block)}\n`) return undefined;
  return JSON.parse(block.toString("utf8", 0, LOCK_BYTES - CHECKSUM_LENGTH)) as LockContent;
}

function checksum(block: Buffer): string {
  return crc32(block.subarray(0, LOCK_BYTES - CHECKSUM_LENGTH))
    .toString(16)
    .padStart(8, "0");
}
