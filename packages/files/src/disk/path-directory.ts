import { basename, dirname, join } from "node:path";
import { type DiskFiles, flushDirectory, systemError } from "./disk-files.ts";
import type { OpenDirectory } from "./open-directory.ts";

/** Opens a root on a system without paths through descriptors. */
export async function openPathDirectory(files: DiskFiles, path: string): Promise<OpenDirectory> {
  const real = await files.realpath(path);
  return PathDirectory.at(files, real, []);
}

/**
 * Elsewhere than on Linux a directory is its real path with device and inode, compared again by `confirm` before
 * and after each use. Between two comparisons a window remains in which a swapped parent is followed.
 */
class PathDirectory implements OpenDirectory {
  readonly names: readonly string[];
  readonly dev: bigint;
  readonly #files: DiskFiles;
  readonly #path: string;
  readonly #ino: bigint;

  private constructor(files: DiskFiles, path: string, names: readonly string[], dev: bigint, ino: bigint) {
    this.names = names;
    this.dev = dev;
    this.#files = files;
    this.#path = path;
    this.#ino = ino;
  }

  static async at(files: DiskFiles, path: string, names: readonly string[]): Promise<PathDirectory> {
    const stats = await files.lstat(path, { bigint: true });
    if (stats.isSymbolicLink()) throw systemError("ELOOP", "the name is a link");
    if (!stats.isDirectory()) throw systemError("ENOTDIR", "the name is no directory");
    return new PathDirectory(files, path, names, stats.dev, stats.ino);
  }

  entry(name: string): string {
    return join(this.#path, name);
  }

  async openChild(name: string): Promise<OpenDirectory> {
    const child = await PathDirectory.at(this.#files, this.entry(name), []);
    // The real path has the name as the disk spells it, and shows a junction or a link in the way.
    const real = await this.#files.realpath(this.entry(name));
    if (dirname(real) !== this.#path) throw systemError("ELOOP", "the name leads elsewhere");
    const spelled = new PathDirectory(
      this.#files,
      real,
      [...this.names, basename(real)],
      child.dev,
      child.#ino,
    );
    await spelled.confirm();
    return spelled;
  }

  async spelling(name: string): Promise<string> {
    const real = await this.#files.realpath(this.entry(name));
    if (dirname(real) !== this.#path) throw systemError("ESTALE", "the file is elsewhere");
    await this.confirm();
    return basename(real);
  }

  async confirm(): Promise<void> {
    const stats = await this.#files.lstat(this.#path, { bigint: true });
    const isSame = stats.isDirectory() && stats.dev === this.dev && stats.ino === this.#ino;
    if (!isSame || (await this.#files.realpath(this.#path)) !== this.#path) {
      throw systemError("ESTALE", "the directory moved");
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  flush(): Promise<void> {
    return flushDirectory(this.#files, this.#path);
  }

  async close(): Promise<void> {
    // Nothing is held open.
  }
}
