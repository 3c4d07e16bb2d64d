import { cpSync } from "node:fs";
import { basename } from "node:path";
import type { FileLayer } from "../../src/file-layer.ts";
import { errno, wrappedFiles } from "./wrapped-files.ts";

/** A file layer that can fail, and that can die: from then on nothing is written, and nobody hears of what was. */
export interface MortalFiles {
  readonly files: FileLayer;
  die(): void;
  /** Every operation fails until the returned function is called. */
  fail(): () => void;
}

export function mortalFiles(): MortalFiles {
  let isDead = false;
  let isBroken = false;
  const never = new Promise<never>(() => {});
  const files = wrappedFiles(async (_operation, run) => {
    if (isDead) return never;
    if (isBroken) throw errno("EIO");
    const outcome = await run();
    return isDead ? never : outcome;
  });
  const fail = (): (() => void) => {
    isBroken = true;
    return () => (isBroken = false);
  };
  return { files, die: () => (isDead = true), fail };
}

/** Copies what a killed process left, without its lock: this process is the one that lives. */
export function copyWithoutLocks(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !basename(path).startsWith("lock") });
}
