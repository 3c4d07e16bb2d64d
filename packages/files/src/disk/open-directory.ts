import { constants } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { posix } from "node:path";
import { type DiskFiles, systemError } from "./disk-files.ts";
import { openPathDirectory } from "./path-directory.ts";

/**
 * A directory inside a root that was reached without following a link, and stays the same directory whatever
 * happens to its name. Every access to an entry goes through {@link OpenDirectory.entry}.
 */
export interface OpenDirectory extends AsyncDisposable {
  /** Its names from the root on, as the disk has them. */
  readonly names: readonly string[];
  readonly dev: bigint;
  /** A path for an entry of exactly this directory. */
  entry(name: string): string;
  /** Opens a directory in it. Errors: ENOENT, and ENOTDIR or ELOOP for anything else than a directory, links included. */
  openChild(name: string): Promise<OpenDirectory>;
  /** The name of an open entry, as the disk has it. Rejects with ESTALE when it is not in this directory. */
  spelling(name: string, entry: FileHandle): Promise<string>;
  /** Rejects with ESTALE when the directory is no longer where it was when it was opened. */
  confirm(): Promise<void>;
  /** Makes the names in it durable. */
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Opens a root. Its own path may hold links: it is the operator's. */
export async function openRootDirectory(files: DiskFiles, path: string): Promise<OpenDirectory> {
  if (files.platform === "linux") {
    const handle = await files.open(path, constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      return await DescriptorDirectory.wrap(files, handle, []);
    } catch {
      // No /proc in this container: the way of the other systems is left.
      await handle.close();
    }
  }
  return openPathDirectory(files, path);
}

/** On Linux the kernel opens `/proc/self/fd/N/name` in the directory behind the descriptor N. */
class DescriptorDirectory implements OpenDirectory {
  readonly names: readonly string[];
  readonly dev: bigint;
  readonly #files: DiskFiles;
  readonly #handle: FileHandle;
  /** Where it was when it was opened: the kernel keeps the path of a descriptor up to date. */
  readonly #path: string;

  private constructor(
    files: DiskFiles,
    handle: FileHandle,
    names: readonly string[],
    path: string,
    dev: bigint,
  ) {
    this.names = names;
    this.dev = dev;
    this.#files = files;
    this.#handle = handle;
    this.#path = path;
  }

  static async wrap(
    files: DiskFiles,
    handle: FileHandle,
    parentNames: readonly string[],
    parentPath?: string,
  ): Promise<DescriptorDirectory> {
    const path = await files.readlink(descriptorPath(handle));
    const { dev } = await handle.stat({ bigint: true });
    if (parentPath === undefined) return new DescriptorDirectory(files, handle, [], path, dev);
    if (posix.dirname(path) !== parentPath) throw systemError("ESTALE", "the directory moved");
    return new DescriptorDirectory(files, handle, [...parentNames, posix.basename(path)], path, dev);
  }

  entry(name: string): string {
    return `${descriptorPath(this.#handle)}/${name}`;
  }

  async openChild(name: string): Promise<OpenDirectory> {
    const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
    const handle = await this.#files.open(this.entry(name), flags);
    try {
      return await DescriptorDirectory.wrap(this.#files, handle, this.names, this.#path);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async spelling(_name: string, entry: FileHandle): Promise<string> {
    return posix.basename(await this.#files.readlink(descriptorPath(entry)));
  }

  async confirm(): Promise<void> {
    const path = await this.#files.readlink(descriptorPath(this.#handle));
    if (path !== this.#path) throw systemError("ESTALE", "the directory moved");
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  flush(): Promise<void> {
    return this.#handle.sync();
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

function descriptorPath(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}
