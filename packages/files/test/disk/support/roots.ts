import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DiskFiles } from "../../../src/disk/disk-files.ts";
import type { RootOptions } from "../../../src/disk/root-options.ts";
import { createRoots, type Roots } from "../../../src/disk/roots.ts";
import { watchedFiles } from "./failing-files.ts";
import { tempDir } from "./temp-dir.ts";

/** A root named `files` in a directory that also holds things which no client may reach. */
export interface Playground {
  readonly roots: Roots;
  /** The root itself. */
  readonly inside: string;
  /** Beside it: `secret.txt`, and the directory `target`. */
  readonly outside: string;
}

export const secret = "nobody reads or replaces this";

export function openPlayground(options: Partial<RootOptions> = {}, files?: DiskFiles): Playground {
  const dir = tempDir();
  const inside = join(dir, "root");
  const outside = join(dir, "root-secret");
  for (const path of [inside, outside, join(outside, "target")]) mkdirSync(path);
  writeFileSync(join(outside, "secret.txt"), secret);
  const roots = createRoots({ files: { path: inside, read: true, write: true, ...options } }, files);
  return { roots, inside, outside };
}

/** The way of Linux, and the way of the other systems, both of which work here. */
export const ways: readonly (readonly [name: string, files: DiskFiles | undefined])[] = [
  ["by descriptors", undefined],
  ["by paths", watchedFiles(() => undefined, "darwin")],
];
