/** What tells one content of a file from every other: JSON, so that a record can keep it between two reads. */
export interface FilePin {
  readonly dev: string;
  readonly ino: string;
  readonly sizeBytes: number;
  readonly mtimeNs: string;
  readonly ctimeNs: string;
}

/** Options of {@link PinnedFile.digest}. */
export interface DigestOptions {
  /** Ends the wait; the computation goes on while somebody else waits for it. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (doneBytes: number, sizeBytes: number) => void;
}

/**
 * An open file whose content must not change: device, inode, size and times are compared before and after each
 * read. Once they differ every read rejects with `source_changed`, and nothing of what was read is handed out.
 */
export interface PinnedFile extends AsyncDisposable {
  readonly pin: FilePin;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
  /** Opaque and equal only for an equal pin: for an `ETag`. Tells nothing about the disk. */
  readonly validator: string;
  /**
   * Reads up to `lengthBytes` from `offset`: fewer at the end of the file, none at its end. An offset beyond the
   * end, or one that is negative, fractional or not a safe integer, is `offset_mismatch`.
   */
  read(offset: number, lengthBytes: number): Promise<Uint8Array>;
  /** Bytes `start` to before `end` (default: to the end). Breaks off with `source_changed` rather than completes with mixed bytes. */
  stream(start?: number, end?: number, signal?: AbortSignal): ReadableStream<Uint8Array>;
  /** The sha256 of the whole, in lower-case hexadecimal: computed once per pin, however many ask. */
  digest(options?: DigestOptions): Promise<string>;
  close(): Promise<void>;
}
