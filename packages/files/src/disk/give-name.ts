import type { BigIntStats } from "node:fs";
import { extname } from "node:path";
import { diskErrors } from "./disk-errors.ts";
import { errnoOf, ifExists } from "./disk-files.ts";
import type { PublishNote } from "./publish-options.ts";
import type { PublishPolicy } from "./publish-policy.ts";
import type { Target } from "./target.ts";

/** The whole and verified file that gets its name. */
export interface UnnamedFile {
  /** The name that it has now. */
  readonly path: string;
  readonly note: PublishNote;
  readonly onPrepared: (note: PublishNote) => Promise<void>;
  /** The placeholder that an earlier call may have left. */
  readonly placeholder?: string | undefined;
}

/** Where even so many versions are taken, somebody publishes in a loop. */
const maxVersions = 1000;

/** A disk without links (FAT, some network and user-space file systems), or a file with too many of them. */
const linkRefused = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK", "EINVAL"]);

/** The names that a policy allows, in the order in which they are tried. */
export function* candidateNames(target: Target, policy: PublishPolicy): Generator<string> {
  yield target.name;
  if (policy !== "version") return;
  const extension = extname(target.name);
  const stem = target.name.slice(0, target.name.length - extension.length);
  for (let version = 2; version <= maxVersions; version += 1) {
    const name = `${stem}-${version}${extension}`;
    if (target.allows(name)) yield name;
  }
}

/**
 * Gives a file the name of the target, or one beside it; resolves to the name. In one step for whoever looks: the old
 * file is there until the new one is. With `fail` and `version` an existing file is never replaced, however close the
 * race. The file may keep its old name as a second one. Errors of the system reach the caller as they are.
 */
export async function giveName(target: Target, file: UnnamedFile, policy: PublishPolicy): Promise<string> {
  const { files, directory, name } = target;
  await directory.confirm();
  if (policy === "replace") {
    // A link of this name would be replaced, not followed; it is refused all the same, like on reading.
    await target.stat(name);
    await files.rename(file.path, directory.entry(name));
    return name;
  }
  for (const candidate of candidateNames(target, policy)) {
    if (await linkAs(target, file, candidate)) return candidate;
  }
  throw diskErrors.targetExists(target.location.path);
}

/** True when the file has the name now; false when another file has it. */
async function linkAs(target: Target, file: UnnamedFile, name: string): Promise<boolean> {
  const entry = target.directory.entry(name);
  try {
    await target.files.link(file.path, entry);
    return true;
  } catch (error) {
    const errno = errnoOf(error) ?? "";
    // A link that an earlier call made before it was cut short is the file itself.
    if (errno === "EEXIST") return isFile(await target.stat(name), file.note);
    if (!linkRefused.has(errno)) throw error;
    return moveExclusively(target, file, name);
  }
}

/**
 * Without links the name is taken by an empty file, which is then replaced. The note names it first, so that after a
 * crash in between the empty file is known to be nobody's.
 */
async function moveExclusively(target: Target, file: UnnamedFile, name: string): Promise<boolean> {
  const entry = target.directory.entry(name);
  const found = await target.stat(name);
  if (found === undefined) {
    await file.onPrepared({ ...file.note, placeholder: name });
    try {
      await (await target.files.open(entry, "wx", target.fileMode)).close();
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
      await file.onPrepared(file.note);
      return false;
    }
  } else if (file.placeholder !== name || found.size > 0n) {
    return false;
  }
  try {
    await target.files.rename(file.path, entry);
    return true;
  } catch (error) {
    if ((await lstat(target, name))?.size === 0n) await ifExists(target.files.unlink(entry));
    throw error;
  }
}

function lstat(target: Target, name: string): Promise<BigIntStats | undefined> {
  return ifExists(target.files.lstat(target.directory.entry(name), { bigint: true }));
}

/** True when these are the stats of the file of the note, under whatever name. */
export function isFile(stats: BigIntStats | undefined, { ino, sizeBytes }: PublishNote): boolean {
  return stats?.isFile() === true && String(stats.ino) === ino && Number(stats.size) === sizeBytes;
}
