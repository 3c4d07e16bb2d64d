import { join } from "node:path";
import { isZero } from "./bytes.ts";
import {
  errnoOf,
  flushDirectory,
  persist,
  readFully,
  writeFully,
  type FileLayer,
  type OpenFile,
} from "./file-layer.ts";
import { encodeSegmentHeader, segmentName, type SegmentHeader } from "./segment-header.ts";

const NAME = "reserve";
const DRAFT_NAME = "reserve-draft";

/** Written a piece at a time, so that nothing waits long behind it. */
const CHUNK_BYTES = 1024 * 1024;

/**
 * Disk space that is ours already: a file of zeros. On a full disk it becomes the next segment, which needs
 * no space at all.
 */
export class ReserveFile {
  readonly bytes: number;
  readonly #files: FileLayer;
  readonly #dir: string;
  #isReady = false;

  constructor(files: FileLayer, dir: string, bytes: number) {
    this.#files = files;
    this.#dir = dir;
    this.bytes = bytes;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Finds the reserve of an earlier opening, or makes one. */
  async prepare(): Promise<void> {
    if (this.#isReady) return;
    if (!(await this.#isWhole())) await this.#make();
    this.#isReady = true;
  }

  /** Turns the reserve into a segment. It is spent then, whatever comes of it. */
  async spend(header: SegmentHeader): Promise<OpenFile> {
    this.#isReady = false;
    const path = join(this.#dir, NAME);
    const file = await this.#files.open(path, "r+");
    try {
      // Header first, name second: under a segment's name there is never a file without a header.
      await writeFully(file, encodeSegmentHeader(header), 0);
      await file.flush();
      await persist(() => this.#files.rename(path, join(this.#dir, segmentName(header))));
      await flushDirectory(this.#files, this.#dir);
      return file;
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async #isWhole(): Promise<boolean> {
    try {
      const file = await this.#files.open(join(this.#dir, NAME), "r");
      try {
        const start = Buffer.alloc(8);
        await readFully(file, start, start.length, 0);
        // A crash between header and rename leaves a reserve that was begun: it is made anew.
        return (await file.size()) === this.bytes && isZero(start, 0, start.length);
      } finally {
        await file.close();
      }
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return false;
      throw error;
    }
  }

  async #make(): Promise<void> {
    const draft = join(this.#dir, DRAFT_NAME);
    await this.#remove(DRAFT_NAME);
    await this.#remove(NAME);
    const file = await this.#files.open(draft, "wx+");
    try {
      const zeros = Buffer.alloc(Math.min(CHUNK_BYTES, this.bytes));
      for (let at = 0; at < this.bytes; at += zeros.length) {
        await writeFully(file, zeros.subarray(0, Math.min(zeros.length, this.bytes - at)), at);
      }
      await file.flush();
    } catch (error) {
      // The space goes back at once: half a reserve helps nobody.
      await this.#remove(DRAFT_NAME);
      throw error;
    } finally {
      await file.close();
    }
    await persist(() => this.#files.rename(draft, join(this.#dir, NAME)));
    await flushDirectory(this.#files, this.#dir);
  }

  async #remove(name: string): Promise<void> {
    try {
      await this.#files.unlink(join(this.#dir, name));
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
    }
  }
}
