import { join } from "node:path";
import { errnoOf, flushDirectory, persist, type FileLayer, type OpenFile } from "./file-layer.ts";
import type { LogSegment } from "./log-segment.ts";

/** Open files kept for reading. A log of any size is read with this many descriptors. */
const MAX_OPEN = 64;

/**
 * The open files of the segments. A reader holds its segment from before it looks until it has read; a
 * segment is removed only when nobody holds it.
 */
export class SegmentFiles {
  readonly #files: FileLayer;
  readonly #dir: string;
  /** In the order of their last use. */
  readonly #open = new Map<LogSegment, Promise<OpenFile>>();
  readonly #idle = new Map<LogSegment, () => void>();

  constructor(files: FileLayer, dir: string) {
    this.#files = files;
    this.#dir = dir;
  }

  /** Keeps a segment's file from being removed. Synchronous: call it before the first await. */
  hold(segment: LogSegment): void {
    segment.holds += 1;
  }

  release(segment: LogSegment): void {
    segment.holds -= 1;
    if (segment.holds === 0) this.#idle.get(segment)?.();
  }

  /** The file of a segment that the caller holds. */
  async file(segment: LogSegment): Promise<OpenFile> {
    const known = this.#open.get(segment);
    if (known !== undefined) {
      this.#open.delete(segment);
      this.#open.set(segment, known);
      return known;
    }
    const opening = this.#openFile(segment);
    this.#open.set(segment, opening);
    try {
      const file = await opening;
      await this.#closeIdle(MAX_OPEN);
      return file;
    } catch (error) {
      this.#open.delete(segment);
      throw error;
    }
  }

  /** Takes over the file of a new segment, which may then be read as well. Its writer holds it. */
  async adopt(segment: LogSegment, file: OpenFile): Promise<void> {
    this.hold(segment);
    this.#open.set(segment, Promise.resolve(file));
    await this.#closeIdle(MAX_OPEN);
  }

  /**
   * Deletes a segment that nobody needs, when its last reader is done. A file that is gone already counts: an
   * earlier attempt may have failed behind its deletion.
   */
  async remove(segment: LogSegment): Promise<void> {
    if (segment.holds > 0) await new Promise<void>((resolve) => this.#idle.set(segment, resolve));
    this.#idle.delete(segment);
    await this.#close(segment);
    try {
      await persist(() => this.#files.unlink(join(this.#dir, segment.name)));
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
    }
    await flushDirectory(this.#files, this.#dir);
  }

  /** Closes every file; resolves to the errors. */
  async closeAll(): Promise<unknown[]> {
    const outcomes = await Promise.allSettled([...this.#open.keys()].map((segment) => this.#close(segment)));
    return outcomes.filter((outcome) => outcome.status === "rejected").map(({ reason }) => reason as unknown);
  }

  async #openFile(segment: LogSegment): Promise<OpenFile> {
    const path = join(this.#dir, segment.name);
    try {
      return await this.#files.open(path, "r");
    } catch (error) {
      const errno = errnoOf(error);
      if (errno !== "EMFILE" && errno !== "ENFILE") throw error;
      // Out of descriptors: give back those that nobody reads from, then one more attempt.
      await this.#closeIdle(1);
      return this.#files.open(path, "r");
    }
  }

  async #closeIdle(most: number): Promise<void> {
    for (const segment of this.#open.keys()) {
      if (this.#open.size <= most) return;
      if (segment.holds > 0) continue;
      // Nothing was written through it that was not flushed or given up: a failed close loses nothing.
      await this.#close(segment).catch(() => {});
    }
  }

  async #close(segment: LogSegment): Promise<void> {
    const opening = this.#open.get(segment);
    this.#open.delete(segment);
    const file = await opening?.catch(() => undefined); // Never opened: whoever asked for it was told.
    await file?.close();
  }
}
