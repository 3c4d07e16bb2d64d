import { join } from "node:path";
import { type DiskFiles, ifExists } from "./disk-files.ts";
import { idOfName, isUnfinishedSidecar } from "./sidecar.ts";

/** A sidecar takes milliseconds to write: one that is unfinished after a minute has no writer any more. */
const unfinishedForMs = 60_000;

/**
 * Makes the staging directory for this user alone, and resolves to its real path. A directory that others may read
 * is tightened if it holds nothing but staged uploads, and is a `TypeError` otherwise: it may be somebody's.
 */
export async function openStagingDirectory(files: DiskFiles, dir: string): Promise<string> {
  await files.mkdir(dir, { recursive: true, mode: 0o700 });
  const real = await files.realpath(dir);
  let isOurs = true;
  for await (const { name } of await files.opendir(real)) {
    if (isUnfinishedSidecar(name)) await removeOld(files, join(real, name));
    else if (idOfName(name) === undefined) isOurs = false;
  }
  if (files.platform === "win32") return real;
  const mode = (await files.lstat(real)).mode & 0o777;
  if ((mode & 0o077) === 0) return real;
  if (!isOurs) {
    throw new TypeError(
      `The staging directory can be read by others (mode ${mode.toString(8)}) and holds more than staged uploads: name a directory of its own, or run chmod 700 on it.`,
    );
  }
  await files.chmod(real, 0o700);
  return real;
}

async function removeOld(files: DiskFiles, path: string): Promise<void> {
  const stats = await ifExists(files.lstat(path));
  if (stats === undefined || stats.mtimeMs > Date.now() - unfinishedForMs) return;
  await ifExists(files.unlink(path));
}
