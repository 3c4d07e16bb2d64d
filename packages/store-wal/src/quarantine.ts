import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { flushDirectory, persist, writeFully, type FileLayer } from "./file-layer.ts";
import type { BlobRef } from "./log-segment.ts";
import type { RecordReader } from "./read-record.ts";

const CHUNK_BYTES = 1024 * 1024;

/** Where damaged bytes are kept, in the directory of the log. */
export const QUARANTINE = "quarantine";

/** The file that keeps the bytes of a place. */
export function quarantineName({
  segment,
  offset,
  bytes,
}: Pick<BlobRef, "segment" | "offset" | "bytes">): string {
  return `${segment.name}-${offset}-${bytes}.bytes`;
}

/** Keeps damaged bytes aside, before compaction can delete them: a person may still save something. */
export class Quarantine {
  readonly #files: FileLayer;
  readonly #reader: RecordReader;
  readonly #dir: string;

  constructor(files: FileLayer, reader: RecordReader, dir: string) {
    this.#files = files;
    this.#reader = reader;
    this.#dir = join(dir, QUARANTINE);
  }

  /** Copies the bytes of a place; resolves to the file, or `undefined` when there is nothing to keep. */
  async keep(place: Pick<BlobRef, "segment" | "offset" | "bytes">): Promise<string | undefined> {
    const { segment, offset, bytes } = place;
    const path = join(this.#dir, quarantineName(place));
    // Under this name there are only whole copies: an earlier one is as good.
    if (this.#files.exists(path)) return path;
    const first = await this.#reader.readRaw({ segment, offset, bytes: Math.min(bytes, CHUNK_BYTES) });
    if (first.length === 0) return undefined;
    await this.#files.makeDirectory(this.#dir);
    const draft = `${path}.${randomBytes(6).toString("hex")}.draft`;
    const file = await this.#files.open(draft, "wx+");
    try {
      await writeFully(file, first, 0);
      for (let at = first.length; at < bytes;) {
        const next = { segment, offset: offset + at, bytes: Math.min(bytes - at, CHUNK_BYTES) };
        const chunk = await this.#reader.readRaw(next);
        if (chunk.length === 0) break;
        await writeFully(file, chunk, at);
        at += chunk.length;
      }
      await file.flush();
      await persist(() => this.#files.rename(draft, path));
    } catch (error) {
      await this.#files.unlink(draft).catch(() => {}); // The first error is the one to report.
      throw error;
    } finally {
      await file.close();
    }
    await flushDirectory(this.#files, this.#dir);
    return path;
  }
}
