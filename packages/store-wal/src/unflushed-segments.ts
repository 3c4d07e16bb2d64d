import { flushDirectory, type FileLayer } from "./file-layer.ts";
import type { LogSegment } from "./log-segment.ts";
import type { SegmentFiles } from "./segment-files.ts";

/** Without fsync: what was acknowledged and not flushed, until something must rely on it. */
export class UnflushedSegments {
  readonly #files: FileLayer;
  readonly #dir: string;
  readonly #open: SegmentFiles;
  #written = new Set<LogSegment>();

  constructor(files: FileLayer, dir: string, open: SegmentFiles) {
    this.#files = files;
    this.#dir = dir;
    this.#open = open;
  }

  wrote(segment: LogSegment): void {
    this.#written.add(segment);
  }

  /** Makes durable what was written before the call, and the names of its files. */
  async flush(): Promise<void> {
    const written = this.#written;
    if (written.size === 0) return;
    this.#written = new Set();
    try {
      for (const segment of written) await this.#flush(segment);
      await flushDirectory(this.#files, this.#dir);
    } catch (error) {
      for (const segment of written) this.#written.add(segment);
      throw error;
    }
  }

  /** Its file is gone. */
  forget(segment: LogSegment): void {
    this.#written.delete(segment);
  }

  async #flush(segment: LogSegment): Promise<void> {
    this.#open.hold(segment);
    try {
      await (await this.#open.file(segment)).flush();
    } finally {
      this.#open.release(segment);
    }
  }
}
