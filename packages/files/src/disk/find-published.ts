import { createHash } from "node:crypto";
import { ifExists } from "./disk-files.ts";
import { candidateNames, isFile } from "./give-name.ts";
import { openRegular } from "./open-regular.ts";
import type { PublishNote, PublishOptions } from "./publish-options.ts";
import { readThrough } from "./read-through.ts";

/**
 * The name that an earlier call gave before it was cut short, if it did: the file of its note is there, and its content
 * is what was verified. The content is read again, because numbers of files are used again.
 */
export async function findPublished(
  { target, policy, signal }: PublishOptions,
  note: PublishNote,
): Promise<string | undefined> {
  const { files, directory } = target;
  for (const name of candidateNames(target, policy)) {
    const stats = await ifExists(files.lstat(directory.entry(name), { bigint: true }));
    if (!isFile(stats, note)) continue;
    await using file = await openRegular(files, directory, name);
    const hash = createHash("sha256");
    await readThrough(file, (piece) => void hash.update(piece), { signal });
    if (hash.digest("hex") === note.sha256) return name;
  }
  return undefined;
}
