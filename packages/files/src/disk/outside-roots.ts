import { dirname, resolve } from "node:path";
import { type DiskFiles, errnoOf, ifExists } from "./disk-files.ts";
import type { Root } from "./root.ts";

/**
 * Rejects with a `TypeError` when a root is no directory, holds one of these directories, or lies inside one: then a
 * client could read what others staged, or write where the server keeps its state. Directories are compared by device
 * and inode, so that links and other spellings hide nothing; those that do not exist yet count as
 * their nearest parent.
 */
export async function assertOutsideRoots(
  files: DiskFiles,
  roots: readonly Root[],
  directories: Readonly<Record<string, string>>,
): Promise<void> {
  for (const root of roots) {
    const above = await identities(files, root.path);
    if (above.self === undefined) throw new TypeError(`The root ${root.name} is no directory.`);
    for (const [label, path] of Object.entries(directories)) {
      const other = await identities(files, path);
      if (other.all.has(above.self)) {
        throw new TypeError(
          `The ${label} directory is inside the root ${root.name}: clients could read and replace what is kept there. Move one of them.`,
        );
      }
      if (other.self !== undefined && above.all.has(other.self)) {
        throw new TypeError(
          `The root ${root.name} is inside the ${label} directory, which is the server's own. Move one of them.`,
        );
      }
    }
  }
}

/** The identity of a directory, if it is one, and those of all directories that it is in. */
async function identities(files: DiskFiles, path: string): Promise<{ self?: string; all: Set<string> }> {
  const exact = resolve(path);
  let nearest = exact;
  let current = await realDirectory(files, nearest);
  while (current === undefined) {
    nearest = dirname(nearest);
    current = await realDirectory(files, nearest);
  }
  const all = new Set<string>();
  for (;;) {
    const { dev, ino } = await files.lstat(current, { bigint: true });
    all.add(`${dev}:${ino}`);
    if (current === dirname(current)) break;
    current = dirname(current);
  }
  const [self] = all;
  return { ...(nearest === exact && self !== undefined ? { self } : {}), all };
}

async function realDirectory(files: DiskFiles, path: string): Promise<string | undefined> {
  try {
    const real = await ifExists(files.realpath(path));
    if (real === undefined || !(await files.lstat(real)).isDirectory()) return undefined;
    return real;
  } catch (error) {
    if (errnoOf(error) === "ENOTDIR") return undefined;
    throw error;
  }
}
