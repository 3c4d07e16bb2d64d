import { diskErrors, quote, toDiskError } from "./disk-errors.ts";
import { errnoOf } from "./disk-files.ts";
import type { FileLocation } from "./target.ts";

/** What is wrong with a path, by the errno that using it gave. All of them are faults of the path, not of the disk. */
const reasons: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ELOOP: "is or passes a link",
  ENOTDIR: "passes something that is no directory",
  EISDIR: "is no regular file",
  ENXIO: "is no regular file",
  ENOTEMPTY: "is no regular file",
  ENAMETOOLONG: "is too long",
  EINVAL: "is no name on this disk",
  EILSEQ: "is no name on this disk",
  ESTALE: "moved while it was used",
  EACCES: "is closed to the server",
  EPERM: "is closed to the server",
  EROFS: "cannot be written",
};

/** The error for a caller whose path led to an error of the system. */
export function toPathError(error: unknown, { root, path }: FileLocation): unknown {
  const reason = reasons[errnoOf(error) ?? ""];
  const what = `${quote(path)} in the root ${quote(root)}`;
  if (reason === undefined) return toDiskError(`${what} cannot be used`, error);
  return diskErrors.pathNotAllowed(
    `${what} ${reason}.`,
    "Name a regular file inside the root, by a path without links.",
    error,
  );
}
