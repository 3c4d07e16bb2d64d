import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { type DigestOptions, DigestCache } from "./digest-cache.ts";
import { diskErrors, toDiskError } from "./disk-errors.ts";
import { type FilePin, hasPin, pinFile, pinKey, pinValidator } from "./file-pin.ts";
import { readThrough } from "./read-through.ts";

export type { DigestOptions } from "./digest-cache.ts";
export type { FilePin } from "./file-pin.ts";

/** Each piece of a stream has memory of its own: larger ones are barely faster, and wait longer to be collected. */
const pieceBytes = 128 * 1024;

/**
 * An open file whose content must not change: device, inode, size and times are compared before and after each
 * read. Once they differ every read rejects with `source_changed`, and nothing of what was read is handed out.
 */
export class PinnedFile implements AsyncDisposable {
  readonly pin: FilePin;
  readonly #file: FileHandle;
  readonly #digests: DigestCache;
  /** Reads, streams and digests that go on; the file is closed after the last of them. */
  #uses = 0;
  #isClosing = false;

  private constructor(file: FileHandle, pin: FilePin, digests: DigestCache) {
    this.#file = file;
    this.pin = pin;
    this.#digests = digests;
  }

  /**
   * Takes over an open file, also if it rejects. With `pin`, `source_changed` unless the file still has that content.
   * Files that share a cache share the digest of equal pins.
   */
  static async open(
    file: FileHandle,
    { pin, digests = new DigestCache() }: { pin?: FilePin | undefined; digests?: DigestCache } = {},
  ): Promise<PinnedFile> {
    try {
      if (pin !== undefined && !(await hasPin(file, pin))) throw diskErrors.sourceChanged();
      return new PinnedFile(file, pin ?? (await pinFile(file)), digests);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  get sizeBytes(): number {
    return this.pin.sizeBytes;
  }

  get modifiedAtMs(): number {
    return Number(BigInt(this.pin.mtimeNs) / 1_000_000n);
  }

  /** Opaque, and equal only for an equal pin: for an `ETag`. Tells nothing about the disk. */
  get validator(): string {
    return pinValidator(this.pin);
  }

  /**
   * Reads up to `lengthBytes` from `offset`: fewer at the end of the file, none at its end. An offset beyond the
   * end, or one that is negative, fractional or not a safe integer, is `offset_mismatch`.
   */
  async read(offset: number, lengthBytes: number): Promise<Uint8Array> {
    this.#assertOffset(offset);
    if (!isCount(lengthBytes)) throw new RangeError("A length is a whole number of bytes.");
    return this.#inUse(async () => {
      await this.#assertPin();
      return this.#read(offset, Math.min(lengthBytes, this.sizeBytes - offset));
    });
  }

  /**
   * Bytes `start` to before `end` (default: to the end), as a stream that takes the memory of its reader. Breaks off with `source_changed` rather than completes with
   * mixed bytes. `close` may be called at once: the file stays open until the stream has ended or was cancelled.
   */
  stream(start = 0, end: number = this.sizeBytes): ReadableStream<Uint8Array> {
    this.#assertOffset(start);
    this.#assertOffset(end);
    if (end < start) throw new RangeError("A stream ends after its start.");
    this.#assertOpen();
    this.#uses += 1;
    const leave = once(() => this.#leave());
    let position = start;
    const pull = async (controller: ReadableByteStreamController): Promise<void> => {
      try {
        // Each piece is checked after it was read, which is also before the next one is; the first one here.
        if (position === start) await this.#assertPin();
        if (position < end) position += await this.#fill(controller, position, end);
        if (position < end) return;
        controller.close();
        // Whoever lent memory gets it back.
        controller.byobRequest?.respond(0);
      } catch (error) {
        controller.error(toDiskError("the file cannot be read", error));
      }
      await leave();
    };
    // Nothing is read ahead: it would be into other memory than the reader's.
    return new ReadableStream({ type: "bytes", pull, cancel: leave }, { highWaterMark: 0 });
  }

  /** The sha256 of the whole, in lower-case hexadecimal: computed once per pin, however many ask. */
  digest(options?: DigestOptions): Promise<string> {
    this.#assertOpen();
    const compute = (signal: AbortSignal, onProgress: (doneBytes: number) => void): Promise<string> =>
      this.#inUse(async () => {
        const hash = createHash("sha256");
        const bytes = await readThrough(this.#file, (piece) => void hash.update(piece), {
          signal,
          onProgress,
        });
        if (bytes !== this.sizeBytes) throw diskErrors.sourceChanged();
        await this.#assertPin();
        return hash.digest("hex");
      });
    return this.#digests.digest(pinKey(this.pin), this.sizeBytes, compute, options);
  }

  /** Closes the file, after the reads, streams and digests that go on. */
  async close(): Promise<void> {
    if (this.#isClosing) return;
    this.#isClosing = true;
    if (this.#uses === 0) await this.#file.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Reads a piece into the memory of the reader, if it lent some, else into new memory. Resolves to its length. */
  async #fill(controller: ReadableByteStreamController, position: number, end: number): Promise<number> {
    const lent = controller.byobRequest;
    const lengthBytes = Math.min(lent?.view?.byteLength ?? pieceBytes, end - position);
    if (lent?.view == null) {
      controller.enqueue(await this.#read(position, lengthBytes));
      return lengthBytes;
    }
    const { buffer, byteOffset } = lent.view;
    await this.#readInto(new Uint8Array(buffer, byteOffset, lengthBytes), position);
    lent.respond(lengthBytes);
    return lengthBytes;
  }

  async #read(offset: number, lengthBytes: number): Promise<Uint8Array<ArrayBuffer>> {
    // Memory of its own: whoever gets the bytes may transfer them.
    const target = new Uint8Array(Buffer.allocUnsafeSlow(lengthBytes).buffer);
    await this.#readInto(target, offset);
    return target;
  }

  async #readInto(target: Uint8Array, offset: number): Promise<void> {
    for (let done = 0; done < target.length;) {
      const { bytesRead } = await this.#file.read(target, done, target.length - done, offset + done);
      if (bytesRead === 0) throw diskErrors.sourceChanged();
      done += bytesRead;
    }
    await this.#assertPin();
  }

  async #assertPin(): Promise<void> {
    if (!(await hasPin(this.#file, this.pin))) throw diskErrors.sourceChanged();
  }

  #assertOffset(offset: number): void {
    if (!isCount(offset) || offset > this.sizeBytes) throw diskErrors.readOffset(offset, this.sizeBytes);
  }

  #assertOpen(): void {
    if (this.#isClosing) throw new TypeError("The file is closed.");
  }

  async #inUse<T>(act: () => Promise<T>): Promise<T> {
    this.#assertOpen();
    this.#uses += 1;
    try {
      return await act();
    } catch (error) {
      throw toDiskError("the file cannot be read", error);
    } finally {
      await this.#leave();
    }
  }

  async #leave(): Promise<void> {
    this.#uses -= 1;
    if (this.#isClosing && this.#uses === 0) await this.#file.close();
  }
}

function isCount(bytes: number): boolean {
  return Number.isSafeInteger(bytes) && bytes >= 0;
}

function once(act: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => (done ??= act());
}
