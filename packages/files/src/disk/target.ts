import type { BigIntStats } from "node:fs";
import { type DiskFiles, ifExists } from "./disk-files.ts";
import type { OpenDirectory } from "./open-directory.ts";
import { assertRegular } from "./open-regular.ts";
import { toPathError } from "./path-errors.ts";

/** A file, as clients name it: the name of a root, and a relative path with forward slashes. */
export type FileLocation = {
  readonly root: string;
  readonly path: string;
};

/** What a {@link Target} is made of. */
export interface TargetParts {
  readonly files: DiskFiles;
  /** The parent directory; the target closes it. */
  readonly directory: OpenDirectory;
  readonly location: FileLocation;
  readonly name: string;
  readonly fileMode: number;
  readonly isDenied: (names: readonly string[]) => boolean;
}

/** Where a file is to be published. Its parent directory is held open until `close`: whatever happens to its name. */
export class Target implements AsyncDisposable {
  readonly location: FileLocation;
  readonly name: string;
  /** The mode that the published file gets. */
  readonly fileMode: number;
  /** @internal */
  readonly files: DiskFiles;
  /** @internal */
  readonly directory: OpenDirectory;
  readonly #isDenied: TargetParts["isDenied"];

  constructor({ files, directory, location, name, fileMode, isDenied }: TargetParts) {
    this.files = files;
    this.directory = directory;
    this.location = location;
    this.name = name;
    this.fileMode = fileMode;
    this.#isDenied = isDenied;
  }

  /** True when there is a file of this name now; `path_not_allowed` when there is something else. */
  async exists(): Promise<boolean> {
    return (await this.stat(this.name)) !== undefined;
  }

  /** @internal The file under a name beside the target, if there is one. Links and everything else are refused. */
  async stat(name: string): Promise<BigIntStats | undefined> {
    try {
      const stats = await ifExists(this.files.lstat(this.directory.entry(name), { bigint: true }));
      if (stats !== undefined) assertRegular(stats);
      return stats;
    } catch (error) {
      throw toPathError(error, this.locate(name));
    }
  }

  /** @internal Where a file of this name beside the target would be. */
  locate(name: string): FileLocation {
    const { root, path } = this.location;
    return { root, path: `${path.slice(0, path.lastIndexOf("/") + 1)}${name}` };
  }

  /** @internal Whether clients may use a name beside the target. */
  allows(name: string): boolean {
    return !this.#isDenied([...this.directory.names, name]);
  }

  close(): Promise<void> {
    return this.directory.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
