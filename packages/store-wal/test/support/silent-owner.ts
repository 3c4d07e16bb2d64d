import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeLock, encodeLock, lockName } from "../../src/lock-file.ts";

/** What others do after ten seconds without a sign of life, without the ten seconds: the lock binds nobody. */
export function takeForDead(dir: string, epoch: number): void {
  const path = join(dir, lockName(epoch));
  const content = decodeLock(readFileSync(path));
  if (content === undefined) throw new Error(`${path} is no lock.`);
  writeFileSync(path, encodeLock({ ...content, state: "closed" }));
}
