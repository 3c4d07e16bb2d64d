import { cpSync } from "node:fs";
import { basename } from "node:path";
import type { FileLayer } from "../../src/file-layer.ts";
import { errno, wrappedFiles } from "./wrapped-files.ts";

/** A file layer that can fail, and that can die: from then on nothing is begun, and nobody hears of what was. */
export interface MortalFiles {
  readonly files: FileLayer;
  /** Resolves when the system has finished what it had begun, as it does for a killed process: the disk stands still. */
  die(): Promise<void>;
  /** Every operation fails until the returned function is called. */
  fail(): () => void;
}

export function mortalFiles(): MortalFiles {
  let isDead = false;
  let isBroken = false;
  const never = new Promise<never>(() => {});
  const underWay = new Set<Promise<unknown>>();
  const files = wrappedFiles(async (_operation, run) => {
    if (isDead) return never;
    if (isBroken) throw errno("EIO");
    const running = run();
    underWay.add(running);
    // A failure says nothing to a dead process either.
    const [outcome] = await Promise.allSettled([running]);
    underWay.delete(running);
    if (isDead) return never;
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
  const die = async (): Promise<void> => {
    isDead = true;
    await Promise.allSettled(underWay);
  };
  const fail = (): (() => void) => {
    isBroken = true;
    return () => (isBroken = false);
  };
  return { files, die, fail };
}

/** Copies what a killed process left, without its lock: this process is the one that lives. */
export function copyWithoutLocks(from: string, to: string): void {
  cpSync(from, to, { recursive: true, filter: (path) => !basename(path).startsWith("lock") });
}
