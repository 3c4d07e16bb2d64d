import { constants } from "node:fs";
import type { BigIntStats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { type DiskFiles, systemError } from "./disk-files.ts";
import type { OpenDirectory } from "./open-directory.ts";

/** Windows has none of them; there the comparisons below do the work. */
const { O_NOFOLLOW = 0, O_NONBLOCK = 0, O_NOCTTY = 0 } = constants as Partial<typeof constants>;

/** Looks at an entry without opening it: `undefined` when there is none. Rejects as {@link assertRegular} does. */
export function assertRegular(stats: BigIntStats): void {
  if (stats.isFile()) return;
  if (stats.isSymbolicLink()) throw systemError("ELOOP", "the name is a link");
  throw systemError("EISDIR", "the name is a directory, a pipe, a socket or a device");
}

/**
 * Opens a regular file of a directory for reading. Links reject with ELOOP, everything else that is no regular file
 * with EISDIR, a file that was swapped meanwhile with ESTALE. Never waits for the other end of a pipe.
 */
export async function openRegular(
  files: DiskFiles,
  directory: OpenDirectory,
  name: string,
): Promise<FileHandle> {
  const entry = directory.entry(name);
  // A device is not opened at all: some act on it.
  const found = await files.lstat(entry, { bigint: true });
  assertRegular(found);
  const file = await files.open(entry, constants.O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const opened = await file.stat({ bigint: true });
    assertRegular(opened);
    if (opened.dev !== found.dev || opened.ino !== found.ino)
      throw systemError("ESTALE", "the file was swapped");
    await directory.confirm();
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
