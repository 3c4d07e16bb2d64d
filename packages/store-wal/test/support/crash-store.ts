import { cpSync } from "node:fs";
import { basename } from "node:path";
import type { FileLayer } from "../../src/file-layer.ts";
import { wrappedFiles } from "./wrapped-files.ts";

/** A file layer that can die: from then on nothing is written, and nobody hears of what was. */
export interface MortalFiles {
  readonly files: FileLayer;
  die(): void;
}

export function mortalFiles(): MortalFiles {
  let isDead = false;
  const never = new Promise<never>(() => {});
  const files = wrappedFiles(async (_operation, run) => {
    if (isDead) return never;
    const outcome = await run();
    return isDead ? never : outcome;
  });
  return { files, die: () => (isDead = true) };
}

/** Copies what a killed process left, without its lock: this process is the one that lives. */
export function copyWithoutLocks(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !basename(path).startsWith("lock") });
}
