import type { FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { DataStore, type Upload } from "@tus/server";

/** What a staging store can do beyond the interface of `@tus/server`; one that says nothing can do none of it. */
export interface StagingAbilities {
  /** A write of a few bytes at any offset is stored as it is. S3, for one, wants parts of 5 MiB. */
  readonly smallWrites: boolean;
  /** Staged bytes can be read from any position. */
  readonly rangedRead: boolean;
  /** Staged bytes can be cut off, as the checksum extension of TUS needs. */
  readonly truncate: boolean;
}

/** Options of {@link StagingStore}. */
export interface StagingStoreOptions {
  /** A directory of its own on a local disk, outside every root. Made with mode 0700 when it is missing. */
  readonly dir: string;
  /** Flush each write to the disk before it is acknowledged. @default false */
  readonly flush?: boolean;
  /** `deleteExpired` removes what was not written for this long, in milliseconds; 0 keeps everything. @default 0 */
  readonly expirationMs?: number;
}

/** One upload, as {@link StagingStore.list} finds it on the disk. */
export interface StagedUpload {
  readonly id: string;
  /** The bytes that are there. */
  readonly stagedBytes: number;
  /** The declared size; absent while it is not known. */
  readonly sizeBytes?: number;
  /** When bytes were last written, in milliseconds since 1970. */
  readonly writtenAtMs: number;
}

/**
 * Staged bytes on a local disk: one file for the bytes of an upload and one, its sidecar, for what was declared
 * about it. The offset of an upload is the size of its file, never a number kept beside it. Rejects with
 * `unknown_transfer` for an id that is not staged or is none, and with `no_space` when the disk is full.
 */
export class StagingStore extends DataStore {
  readonly abilities: StagingAbilities = { smallWrites: true, rangedRead: true, truncate: true };
  readonly dir: string;

  constructor(options: StagingStoreOptions) {
    super();
    this.dir = options.dir;
    this.extensions = [
      "creation",
      "creation-with-upload",
      "creation-defer-length",
      "termination",
      "expiration",
    ];
  }

  /** Makes the directory and checks that nobody else may read it. Every method does it first; calling it early shows a bad configuration early. */
  open(): Promise<void> {
    throw new Error("to come");
  }

  /** Stages an upload of no bytes. `no_space` when its declared size is more than the disk has left. */
  override create(_upload: Upload): Promise<Upload> {
    throw new Error("to come");
  }

  /**
   * Appends a stream at `offset`, which is where the staged bytes end (else `offset_mismatch`, and nothing changes).
   * Resolves to the new offset. When the stream breaks, or the disk fails, what was stored is kept and counts:
   * the error carries it as `partial.cursor`. Bytes past the declared size are not stored: `size_mismatch`.
   * A second writer at the same time gets `transfer_busy`.
   */
  override write(
    _stream: Readable | AsyncIterable<Uint8Array>,
    _id: string,
    _offset: number,
  ): Promise<number> {
    throw new Error("to come");
  }

  /** What was declared about an upload, and its offset. */
  override getUpload(_id: string): Promise<Upload> {
    throw new Error("to come");
  }

  /** Declares the size of an upload that began without one; not smaller than what is staged, and only once. */
  override declareUploadLength(_id: string, _sizeBytes: number): Promise<void> {
    throw new Error("to come");
  }

  /** Deletes the bytes and what was declared about them. */
  override remove(_id: string): Promise<void> {
    throw new Error("to come");
  }

  /** Like `remove`, but an id that is not staged is fine. */
  discard(_id: string): Promise<void> {
    throw new Error("to come");
  }

  /** Deletes what was not written for `expirationMs`, except under a writer; resolves to how many. */
  override deleteExpired(): Promise<number> {
    throw new Error("to come");
  }

  /** Where the upload ends now: the size of its file. */
  stagedBytes(_id: string): Promise<number> {
    throw new Error("to come");
  }

  /** Cuts the staged bytes off at `sizeBytes`, which is not more than what is staged. */
  truncate(_id: string, _sizeBytes: number): Promise<void> {
    throw new Error("to come");
  }

  /** The staged bytes, open for reading; the caller closes them. */
  openStaged(_id: string): Promise<FileHandle> {
    throw new Error("to come");
  }

  /** Every upload in the directory, for a sweep that compares it with the records. */
  list(): AsyncIterable<StagedUpload> {
    throw new Error("to come");
  }

  /** Bytes that may still be written to this disk. */
  freeBytes(): Promise<number> {
    throw new Error("to come");
  }
}
