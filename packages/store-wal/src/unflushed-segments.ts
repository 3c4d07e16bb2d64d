import { join } from "node:path";
import { flushDirectory, type FileLayer } from "./file-layer.ts";
import type { LogSegment } from "./log-segment.ts";
import type { SegmentFiles } from "./segment-files.ts";

/**
 * What may not be on the disk yet, until something must rely on it: what a killed owner left, and without fsync
 * what was acknowledged since.
 */
export class UnflushedSegments {
  readonly #files: FileLayer;
  readonly #dir: string;
  readonly #open: SegmentFiles;
  readonly #found: ReadonlySet<LogSegment>;
  #written: Set<LogSegment>;

  /** @param found - The files of earlier owners that nobody vouches for. */
  constructor(files: FileLayer, dir: string, open: SegmentFiles, found: readonly LogSegment[]) {
    this.#files = files;
    this.#dir = dir;
    this.#open = open;
    this.#found = new Set(found);
    this.#written = new Set(found);
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
      if (this.#found.has(segment)) await this.#flushFound(segment);
      else await (await this.#open.file(segment)).flush();
    } finally {
      this.#open.release(segment);
    }
  }

  /** Others are open for reading only, and not every system flushes through such a file. */
  async #flushFound(segment: LogSegment): Promise<void> {
    const file = await this.#files.open(join(this.#dir, segment.name), "r+");
    try {
      await file.flush();
    } finally {
      await file.close();
    }
  }
}
