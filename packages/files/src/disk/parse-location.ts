import { diskErrors, quote } from "./disk-errors.ts";
import { isTemporaryName } from "./temporary-name.ts";

/** Longer paths are refused before a directory is opened for each of their names. */
const maxPathBytes = 4096;

/** What the file systems in use hold. */
const maxNameBytes = 255;

/** Characters that steer a terminal, end a line or separate names on some system; and halves of characters. */
const forbidden = /[\p{Cc}\p{Cs}\\]/u;

/** Names that Windows takes for a device or for another name: reserved words, streams, trailing dots, short names. */
const windowsName = /^(?:con|prn|aux|nul|com\d|lpt\d|conin\$|conout\$)(?:\.|$)|[<>:"|?*]|[. ]$|~\d/iu;

/**
 * The names of a relative path, from the root on; `path_not_allowed` for everything that could mean another place,
 * here or on another system. Looks at the text only.
 */
export function parsePath(path: string, platform: NodeJS.Platform): string[] {
  if (typeof path !== "string" || path === "") throw refused("A path is missing.");
  if (Buffer.byteLength(path) > maxPathBytes) throw refused("The path is too long.");
  if (forbidden.test(path)) {
    throw refused(`The path ${quote(path)} has a backslash, a control character or half a character in it.`);
  }
  const names = path.split("/");
  for (const name of names) {
    if (name === "" || name === "." || name === "..") throw refused(`The path ${quote(path)} is not plain.`);
    if (Buffer.byteLength(name) > maxNameBytes) throw refused("A name in the path is too long.");
    if (isTemporaryName(name) || (platform === "win32" && windowsName.test(name))) {
      throw refused(`The name ${quote(name)} is reserved.`);
    }
  }
  return names;
}

function refused(message: string): Error {
  return diskErrors.pathNotAllowed(
    message,
    'Name the file by its path inside the root, with forward slashes and no "..", such as reports/2026.csv.',
  );
}
