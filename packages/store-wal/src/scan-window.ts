import type { OpenFile } from "./file-layer.ts";
import { readFully } from "./file-layer.ts";

/**
 * A file seen through one buffer that moves forward: a log of any size is read with the memory of one chunk,
 * or of one frame where that is larger.
 */
export class ScanWindow {
  /** The loaded bytes. Replaced and overwritten by {@link load}: look it up again afterwards. */
  bytes: Buffer = Buffer.alloc(0);
  /** Where the file is said to end; less, when a read finds that it ends earlier. */
  end: number;
  readonly #file: OpenFile;
  readonly #chunkBytes: number;
  /** Used again for every read: a buffer per chunk would double the memory of an opening. */
  #chunk: Buffer | undefined;
  #start = 0;

  constructor(file: OpenFile, end: number, chunkBytes: number) {
    this.#file = file;
    this.end = end;
    this.#chunkBytes = chunkBytes;
  }

  /** Whether the bytes at a position of the file are loaded, as far as the file has them. */
  holds(position: number, length: number): boolean {
    const wanted = Math.min(position + length, this.end);
    return position >= this.#start && wanted <= this.#start + this.bytes.length;
  }

  /** Where in {@link bytes} a position of the file lies. */
  at(position: number): number {
    return position - this.#start;
  }

  /** Loads at least `length` bytes from `position`, as far as the file has them. */
  async load(position: number, length: number): Promise<void> {
    const wanted = Math.max(0, Math.min(Math.max(length, this.#chunkBytes), this.end - position));
    const bytes = this.#bufferOf(wanted);
    const count = await readFully(this.#file, bytes, wanted, position);
    if (count < wanted) this.end = position + count;
    this.#start = position;
    this.bytes = bytes.subarray(0, count);
  }

  #bufferOf(wanted: number): Buffer {
    if (wanted > this.#chunkBytes) return Buffer.allocUnsafe(wanted);
    this.#chunk ??= Buffer.allocUnsafe(Math.min(this.#chunkBytes, this.end));
    return this.#chunk;
  }
}
