import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** What tells one content of a file from every other: JSON, so that a record can keep it between two reads. */
export type FilePin = {
  readonly dev: string;
  readonly ino: string;
  readonly sizeBytes: number;
  readonly mtimeNs: string;
  readonly ctimeNs: string;
};

/**
 * Kernels before 6.13 stamp files from a clock that moves in steps of up to 10 ms: a second change in the same
 * step shows in no stamp. A pin is taken only when the last change is older than this.
 */
const clockStepMs = 20;

/** A file that changes all the time is not waited for: the next read finds out. */
const maxWaits = 3;

/** Pins the content of an open file. */
export async function pinFile(file: FileHandle): Promise<FilePin> {
  let stats = await file.stat({ bigint: true });
  for (let waits = 0; waits < maxWaits; waits += 1) {
    const ageMs = Date.now() - Number(stats.ctimeMs);
    if (ageMs < 0 || ageMs > clockStepMs) break;
    await delay(clockStepMs);
    stats = await file.stat({ bigint: true });
  }
  return toPin(stats);
}

/** The pin of the content that a file has right now, without a guarantee that the next change will show. */
export function toPin(stats: BigIntStats): FilePin {
  return {
    dev: String(stats.dev),
    ino: String(stats.ino),
    sizeBytes: Number(stats.size),
    mtimeNs: String(stats.mtimeNs),
    ctimeNs: String(stats.ctimeNs),
  };
}

/** One text for one content. */
export function pinKey({ dev, ino, sizeBytes, mtimeNs, ctimeNs }: FilePin): string {
  return [dev, ino, sizeBytes, mtimeNs, ctimeNs].join(":");
}

/** Equal for equal pins, and tells nothing about the disk. */
export function pinValidator(pin: FilePin): string {
  return createHash("sha256").update(pinKey(pin)).digest("base64url").slice(0, 32);
}

/** True while an open file has the content that was pinned. */
export async function hasPin(file: FileHandle, pin: FilePin): Promise<boolean> {
  return pinKey(toPin(await file.stat({ bigint: true }))) === pinKey(pin);
}
