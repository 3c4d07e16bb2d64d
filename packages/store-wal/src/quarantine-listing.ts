import { join } from "node:path";
import { readHash } from "./decode-frame.ts";
import { errnoOf, readFully, type FileLayer } from "./file-layer.ts";
import { HEADER_MAGIC_WORD, TRAILER_BYTES, TRAILER_MAGIC_WORD } from "./frame-format.ts";
import { hashKey, type IdHash } from "./hash-id.ts";
import type { BlobRef } from "./log-segment.ts";
import { QUARANTINE, quarantineName } from "./quarantine.ts";

/** Enough of a header to hold the hash of the id. */
const HASH_END = 32;

/** The damaged bytes that earlier openings of a log kept aside. */
export class QuarantineListing {
  readonly #files: FileLayer;
  readonly #dir: string;
  readonly #names: ReadonlySet<string>;
  #byHash: Promise<Map<string, string>> | undefined;

  private constructor(files: FileLayer, dir: string, names: readonly string[]) {
    this.#files = files;
    this.#dir = dir;
    // In the order of the log, so that the newest of a task comes last.
    this.#names = new Set(names.toSorted(inLogOrder));
  }

  static async read(files: FileLayer, logDir: string): Promise<QuarantineListing> {
    const dir = join(logDir, QUARANTINE);
    const names = await files.list(dir).catch((error: unknown) => {
      if (errnoOf(error) === "ENOENT") return [];
      throw error;
    });
    return new QuarantineListing(files, dir, names);
  }

  /** The file that keeps the bytes of a place. */
  at(place: Pick<BlobRef, "segment" | "offset" | "bytes">): string | undefined {
    const name = quarantineName(place);
    return this.#names.has(name) ? join(this.#dir, name) : undefined;
  }

  /**
   * The newest file that keeps bytes of a task: for damage whose place is gone with its segment. Header or
   * trailer may be the damaged part, so what they say is a good guess.
   */
  async ofTask(idHash: IdHash): Promise<string | undefined> {
    this.#byHash ??= this.#readHashes();
    return (await this.#byHash).get(hashKey(idHash));
  }

  async #readHashes(): Promise<Map<string, string>> {
    const byHash = new Map<string, string>();
    for (const name of this.#names) {
      const path = join(this.#dir, name);
      const file = await this.#files.open(path, "r");
      try {
        const start = Buffer.alloc(HASH_END);
        const end = Buffer.alloc(TRAILER_BYTES);
        await readFully(file, start, start.length, 0);
        await readFully(file, end, end.length, Math.max(0, (await file.size()) - end.length));
        if (start.readUInt32LE(0) === HEADER_MAGIC_WORD) byHash.set(hashKey(readHash(start, 24)), path);
        if (end.readUInt32LE(0) === TRAILER_MAGIC_WORD) byHash.set(hashKey(readHash(end, 16)), path);
      } finally {
        await file.close();
      }
    }
    return byHash;
  }
}

/** By file, then by offset: `segment-….log-<offset>-<bytes>.bytes`. */
function inLogOrder(left: string, right: string): number {
  return left.localeCompare(right, "en", { numeric: true });
}
