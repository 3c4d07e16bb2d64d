import type { FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { isLongJobsError } from "@longjobs/core";
import { DataStore, Upload } from "@tus/server";
import { appendStream } from "./append-stream.ts";
import { diskErrors } from "./disk-errors.ts";
import { type DiskFiles, diskFiles } from "./disk-files.ts";
import { bytesName } from "./sidecar.ts";
import { StagedFiles, type StagedUpload } from "./staged-files.ts";
import type { StagingAbilities } from "./staging-abilities.ts";

/** Options of {@link StagingStore}. */
export interface StagingStoreOptions {
  /** A directory of its own on a local disk, outside every root. Made with mode 0700 when it is missing. */
  readonly dir: string;
  /** Flush each write to the disk before it is acknowledged. @default false */
  readonly flush?: boolean;
  /** `deleteExpired` removes what was not written for this long, in milliseconds; 0 keeps everything. @default 0 */
  readonly expirationMs?: number;
}

/**
 * Staged bytes on a local disk: one file for the bytes of an upload and one, its sidecar, for what was declared
 * about it. The offset of an upload is the size of its file, never a number kept beside it. Rejects with
 * `unknown_transfer` for an id that is not staged or is none, and with `no_space` when the disk is full.
 */
export class StagingStore extends DataStore {
  readonly abilities: StagingAbilities = { smallWrites: true, rangedRead: true, truncate: true };
  /** The directory, as it was given. */
  readonly dir: string;
  readonly #flush: boolean;
  readonly #expirationMs: number;
  readonly #staged: StagedFiles;
  /** The ids that are being written, cut or deleted by this process: a second call is refused, not queued. */
  readonly #busy = new Set<string>();

  /** Touches no disk. A bad option is a `TypeError` or a `RangeError`. */
  constructor(options: StagingStoreOptions, files: DiskFiles = diskFiles) {
    super();
    const { dir, flush = false, expirationMs = 0 } = options;
    if (typeof dir !== "string" || dir === "") throw new TypeError("A staging store needs a directory: dir.");
    if (!(expirationMs >= 0)) throw new RangeError("expirationMs is a number of milliseconds, or 0.");
    this.dir = dir;
    this.#flush = flush;
    this.#expirationMs = expirationMs;
    this.#staged = new StagedFiles(files, dir);
    this.extensions = [
      "creation",
      "creation-with-upload",
      "creation-defer-length",
      "termination",
      "expiration",
    ];
  }

  /**
   * Makes the directory and checks that nobody else may read it. Every method does it first; calling it early shows
   * a bad configuration early.
   */
  async open(): Promise<void> {
    await this.#staged.open();
  }

  /**
   * Stages an upload of no bytes. `no_space` when its declared size is more than the disk has left. Once it
   * resolves, the upload is there after a power cut.
   */
  override create(upload: Upload): Promise<Upload> {
    const { id, size, metadata } = upload;
    return this.#exclusively(id, async () => {
      if (size !== undefined) await this.#assertRoom(id, size, 0);
      await this.#staged.create(id, {
        format: 1,
        ...(size === undefined ? {} : { size }),
        ...(metadata === undefined ? {} : { metadata }),
        createdAt: upload.creation_date ?? new Date().toISOString(),
      });
      upload.storage = { type: "file", path: bytesName(id) };
      return upload;
    });
  }

  /**
   * Appends a stream at `offset`, which is where the staged bytes end (else `offset_mismatch`, and nothing changes).
   * Resolves to the new offset. When the stream breaks it rejects with the stream's error; when the disk fails, with
   * one that carries the offset as `partial.cursor`: what was stored is kept and counts. Bytes past the declared size
   * are not stored: `size_mismatch`. A second writer at the same time gets `transfer_busy`.
   */
  override write(
    stream: Readable | AsyncIterable<Uint8Array | string>,
    id: string,
    offset: number,
  ): Promise<number> {
    return this.#exclusively(id, async () => {
      const { size: sizeBytes } = await this.#staged.sidecar(id);
      const { file, size } = await this.#staged.openForWriting(id);
      await using _open = file;
      if (size !== offset) throw diskErrors.offsetMismatch(id, offset, size);
      return await appendStream(file, stream, { id, offset, sizeBytes, flush: this.#flush });
    });
  }

  /**
   * What was declared about an upload, and its offset. TUS counts the expiry from the creation date; where there is
   * an expiry it is the time of the last write, so that what clients are told is what `deleteExpired` does.
   */
  override async getUpload(id: string): Promise<Upload> {
    const { size, metadata, createdAt } = await this.#staged.sidecar(id);
    const bytes = await this.#staged.stat(id);
    return new Upload({
      id,
      offset: bytes.size,
      creation_date: this.#expirationMs === 0 ? createdAt : bytes.mtime.toISOString(),
      storage: { type: "file", path: bytesName(id) },
      ...(size === undefined ? {} : { size }),
      ...(metadata === undefined ? {} : { metadata }),
    });
  }

  /** Declares the size of an upload that began without one; not smaller than what is staged, and only once. */
  override declareUploadLength(id: string, sizeBytes: number): Promise<void> {
    return this.#exclusively(id, async () => {
      const sidecar = await this.#staged.sidecar(id);
      const { size: stagedBytes } = await this.#staged.stat(id);
      if (sidecar.size === sizeBytes) return;
      if (sidecar.size !== undefined || stagedBytes > sizeBytes) {
        throw diskErrors.sizeMismatch(stagedBytes, sizeBytes);
      }
      await this.#assertRoom(id, sizeBytes, stagedBytes);
      await this.#staged.replaceSidecar(id, { ...sidecar, size: sizeBytes });
    });
  }

  /** Deletes the bytes and what was declared about them. */
  override async remove(id: string): Promise<void> {
    await this.#staged.stat(id);
    await this.discard(id);
  }

  /** Like `remove`, but an id that is not staged, or not any more, is fine. */
  discard(id: string): Promise<void> {
    return this.#exclusively(id, () => this.#staged.delete(id));
  }

  /** How long an upload that is not written stays, for the `Upload-Expires` header. */
  override getExpiration(): number {
    return this.#expirationMs;
  }

  /** Deletes what was not written for `expirationMs`, except under a writer; resolves to how many. */
  override async deleteExpired(): Promise<number> {
    if (this.#expirationMs === 0) return 0;
    const writtenBefore = Date.now() - this.#expirationMs;
    let deleted = 0;
    for await (const { id, writtenAtMs } of this.list()) {
      if (writtenAtMs >= writtenBefore) continue;
      try {
        await this.discard(id);
        deleted += 1;
      } catch (error) {
        // A writer has begun since: the upload is not expired any more.
        if (!isLongJobsError(error, "transfer_busy")) throw error;
      }
    }
    return deleted;
  }

  /** Where the upload ends now: the size of its file. */
  async stagedBytes(id: string): Promise<number> {
    return (await this.#staged.stat(id)).size;
  }

  /** Cuts the staged bytes off at `sizeBytes`, which is not more than what is staged. */
  truncate(id: string, sizeBytes: number): Promise<void> {
    return this.#exclusively(id, async () => {
      const { file, size } = await this.#staged.openForWriting(id);
      await using _open = file;
      if (!isSize(sizeBytes) || sizeBytes > size) throw diskErrors.offsetMismatch(id, sizeBytes, size);
      try {
        await file.truncate(sizeBytes);
        if (this.#flush) await file.sync();
      } catch (cause) {
        throw diskErrors.failed(`transfer ${id} cannot be cut`, cause);
      }
    });
  }

  /** The staged bytes, open for reading; the caller closes them. */
  openStaged(id: string): Promise<FileHandle> {
    return this.#staged.openForReading(id);
  }

  /** Every upload in the directory, for a sweep that compares it with the records. */
  list(): AsyncIterable<StagedUpload> {
    return this.#staged.list();
  }

  /** Bytes that may still be written to this disk; `Infinity` where the system does not tell. */
  freeBytes(): Promise<number> {
    return this.#staged.freeBytes();
  }

  /** @internal The file with the staged bytes, for `publish`, which moves it. */
  pathOf(id: string): Promise<string> {
    return this.#staged.bytesPath(id);
  }

  async #assertRoom(id: string, sizeBytes: number, stagedBytes: number): Promise<void> {
    if (!isSize(sizeBytes)) throw new RangeError("The size of an upload is a whole number of bytes.");
    const missing = sizeBytes - stagedBytes;
    if (missing <= (await this.freeBytes())) return;
    throw diskErrors.failed(`transfer ${id} needs ${missing} bytes`, { code: "ENOSPC" }, stagedBytes);
  }

  async #exclusively<T>(id: string, act: () => Promise<T>): Promise<T> {
    if (this.#busy.has(id)) throw diskErrors.transferBusy(`Transfer ${id}`);
    this.#busy.add(id);
    try {
      return await act();
    } finally {
      this.#busy.delete(id);
    }
  }
}

function isSize(bytes: number): boolean {
  return Number.isSafeInteger(bytes) && bytes >= 0;
}
