import { constants, type Stats } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { isTaskId } from "@longjobs/core";
import { diskErrors, toDiskError } from "./disk-errors.ts";
import { type DiskFiles, errnoOf, ifExists } from "./disk-files.ts";
import { bytesName, idOfName, readSidecar, type Sidecar, sidecarName, writeSidecar } from "./sidecar.ts";
import { openStagingDirectory } from "./staging-directory.ts";

/** One upload, as {@link StagedFiles.list} finds it on the disk. */
export interface StagedUpload {
  readonly id: string;
  /** The bytes that are there. */
  readonly stagedBytes: number;
  /** When bytes were last written, in milliseconds since 1970. */
  readonly writtenAtMs: number;
}

/** Some systems have no such flag; there the staging directory is guarded by its mode alone. */
const noLinks = constants.O_NOFOLLOW ?? 0;

/**
 * The files of a staging directory, by the id of their upload: `<id>.part` holds the bytes, `<id>.json` what was
 * declared. An id that is none never becomes a path; every failure of the disk becomes an error with a code.
 */
export class StagedFiles {
  readonly #files: DiskFiles;
  readonly #dir: string;
  #opening: Promise<string> | undefined;

  constructor(files: DiskFiles, dir: string) {
    this.#files = files;
    this.#dir = dir;
  }

  /** Opens the directory once; after a failure the next call tries again. */
  open(): Promise<string> {
    this.#opening ??= openStagingDirectory(this.#files, this.#dir).catch((error: unknown) => {
      this.#opening = undefined;
      throw toCoded("the staging directory cannot be used", error);
    });
    return this.#opening;
  }

  /** The path of the bytes of an upload. */
  async bytesPath(id: string): Promise<string> {
    return this.#path(id, bytesName);
  }

  /** Makes both files, durably. */
  async create(id: string, sidecar: Sidecar): Promise<void> {
    const path = await this.bytesPath(id);
    await act(`transfer ${id} cannot be staged`, async () => {
      await (await this.#files.open(path, "wx", 0o600)).close();
      try {
        // Bytes first, sidecar second: an upload without a sidecar is unknown to everybody.
        await writeSidecar(this.#files, await this.open(), id, sidecar);
      } catch (error) {
        await ifExists(this.#files.unlink(path));
        throw error;
      }
    });
  }

  async sidecar(id: string): Promise<Sidecar> {
    const path = await this.#path(id, sidecarName);
    try {
      return await readSidecar(this.#files, path);
    } catch (error) {
      if (error instanceof SyntaxError) throw diskErrors.corrupt(id, error);
      throw toCoded(`what was declared about transfer ${id} cannot be read`, error, id);
    }
  }

  async replaceSidecar(id: string, sidecar: Sidecar): Promise<void> {
    const dir = await this.open();
    await act(`what was declared about transfer ${id} cannot be stored`, () =>
      writeSidecar(this.#files, dir, id, sidecar),
    );
  }

  async stat(id: string): Promise<Stats> {
    const path = await this.bytesPath(id);
    const stats = await act(`the size of transfer ${id} cannot be told`, () => this.#files.lstat(path), id);
    if (!stats.isFile()) throw diskErrors.unknownTransfer(id);
    return stats;
  }

  openForReading(id: string): Promise<FileHandle> {
    return this.#openBytes(id, constants.O_RDONLY);
  }

  /** The file, which the caller closes, and its size. */
  async openForWriting(id: string): Promise<{ file: FileHandle; size: number }> {
    const file = await this.#openBytes(id, constants.O_WRONLY);
    try {
      const { size, nlink } = await act(`the size of transfer ${id} cannot be told`, () => file.stat());
      // A second name means that publishing was cut short after it had given the name: these bytes are the target's.
      if (nlink > 1) throw diskErrors.published(id);
      return { file, size };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** Deletes both files, those that are there. */
  async delete(id: string): Promise<void> {
    const bytes = await this.bytesPath(id);
    const sidecar = await this.#path(id, sidecarName);
    await act(`transfer ${id} cannot be deleted`, async () => {
      // Bytes first: after a crash in between the space is free, and the sidecar is still listed.
      await ifExists(this.#files.unlink(bytes));
      await ifExists(this.#files.unlink(sidecar));
    });
  }

  async *list(): AsyncGenerator<StagedUpload, void, undefined> {
    const dir = await this.open();
    for await (const { name } of await this.#files.opendir(dir)) {
      const id = idOfName(name);
      if (id === undefined) continue;
      const bytes = await ifExists(this.#files.lstat(join(dir, bytesName(id))));
      // An upload with both files is told once, under its bytes.
      if (bytes !== undefined && name !== bytesName(id)) continue;
      const stats = bytes ?? (await ifExists(this.#files.lstat(join(dir, name))));
      if (stats !== undefined) yield { id, stagedBytes: bytes?.size ?? 0, writtenAtMs: stats.mtimeMs };
    }
  }

  /** Bytes that may still be written to this disk; `Infinity` where the system does not tell. */
  async freeBytes(): Promise<number> {
    const dir = await this.open();
    const { bavail, bsize, blocks } = await act("the free space cannot be told", () =>
      this.#files.statfs(dir),
    );
    return blocks === 0 ? Infinity : bavail * bsize;
  }

  async #path(id: string, nameOf: (id: string) => string): Promise<string> {
    if (!isTaskId(id)) throw diskErrors.unknownTransfer(id);
    return join(await this.open(), nameOf(id));
  }

  async #openBytes(id: string, flags: number): Promise<FileHandle> {
    const path = await this.bytesPath(id);
    return act(`transfer ${id} cannot be opened`, () => this.#files.open(path, flags | noLinks), id);
  }
}

/** Runs an operation of the disk; with `id`, a missing file means that the transfer is unknown. */
async function act<T>(what: string, operation: () => Promise<T>, id?: string): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    throw toCoded(what, error, id);
  }
}

function toCoded(what: string, error: unknown, id?: string): unknown {
  if (id !== undefined && errnoOf(error) === "ENOENT") return diskErrors.unknownTransfer(id);
  return toDiskError(what, error);
}
