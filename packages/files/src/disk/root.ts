import { isAbsolute } from "node:path";
import { compileDenyPatterns } from "./deny-patterns.ts";
import { diskErrors } from "./disk-errors.ts";
import { type DiskFiles, errnoOf } from "./disk-files.ts";
import { type OpenDirectory, openRootDirectory } from "./open-directory.ts";
import type { RootOptions } from "./root-options.ts";

const optionNames = new Set(["path", "read", "write", "deny", "fileMode"]);

/** What a client may do in a root. */
export type RootRight = "read" | "write";

/** A root whose options are checked. */
export class Root {
  readonly name: string;
  readonly path: string;
  readonly fileMode: number;
  readonly isDenied: (names: readonly string[]) => boolean;
  readonly #rights: Readonly<Record<RootRight, boolean>>;

  /** A bad option is a `TypeError`. */
  constructor(name: string, options: RootOptions) {
    const unknown = Object.keys(options).find((key) => !optionNames.has(key));
    const { path, read = true, write = false, deny = [], fileMode = 0o600 } = options;
    if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(name)) {
      throw new TypeError(`${JSON.stringify(name)} is no name for a root: letters, digits, dots, dashes.`);
    }
    // A misspelt option would leave a root more open than it looks.
    if (unknown !== undefined)
      throw new TypeError(`The root ${name} has an option that is none: ${unknown}.`);
    if (typeof path !== "string" || !isAbsolute(path)) {
      throw new TypeError(`The root ${name} needs an absolute path.`);
    }
    if (!read && !write) throw new TypeError(`The root ${name} grants neither read nor write.`);
    if (!Number.isInteger(fileMode) || (fileMode & ~0o777) !== 0 || (fileMode & 0o600) !== 0o600) {
      throw new TypeError(`The fileMode of the root ${name} is no mode that lets the server read and write.`);
    }
    this.name = name;
    this.path = path;
    this.fileMode = fileMode;
    this.isDenied = compileDenyPatterns(deny);
    this.#rights = { read, write };
  }

  /** Whether clients have a right here. */
  grants(right: RootRight): boolean {
    return this.#rights[right];
  }

  /** The mode of a directory: whoever may read its files may enter it. */
  get directoryMode(): number {
    return this.fileMode | ((this.fileMode & 0o444) >> 2);
  }

  /** Opens the directory itself. That it is missing is the server's fault, not the client's. */
  async open(files: DiskFiles): Promise<OpenDirectory> {
    try {
      return await openRootDirectory(files, this.path);
    } catch (error) {
      throw diskErrors.failed(`the root ${this.name} cannot be opened`, error);
    }
  }

  /** Opens a directory in it, name by name from the parent's descriptor. The errors are those of the system. */
  async walk(
    files: DiskFiles,
    names: readonly string[],
    onMissing: (directory: OpenDirectory, name: string) => Promise<void> = noDirectory,
  ): Promise<OpenDirectory> {
    let directory = await this.open(files);
    try {
      for (const name of names) {
        const child = await openOrMake(directory, name, onMissing);
        await directory.close();
        directory = child;
      }
      return directory;
    } catch (error) {
      await directory.close();
      throw error;
    }
  }
}

async function openOrMake(
  directory: OpenDirectory,
  name: string,
  onMissing: (directory: OpenDirectory, name: string) => Promise<void>,
): Promise<OpenDirectory> {
  try {
    return await directory.openChild(name);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT") throw error;
    await onMissing(directory, name);
    return directory.openChild(name);
  }
}

async function noDirectory(): Promise<void> {
  // Opening it again tells that it is missing.
}
