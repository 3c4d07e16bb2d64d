import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { decodeLock, encodeLock } from "../../src/lock-file.ts";
import type { FileOperation } from "./wrapped-files.ts";

const SECTOR_BYTES = 512;

interface Inode {
  flushed: Buffer;
  /** Writes since the last flush, in their order. */
  pending: { readonly at: number; readonly bytes: Buffer }[];
}

/** A number from 0 to 1, below 1. */
export type Random = () => number;

/**
 * What a power cut may leave of a sequence of file operations: of what was written since the last flush any
 * set of sectors, files shorter than they were, and of the names either those of the last flush or the new ones. What
 * a killed process leaves is all of it, but still unflushed.
 */
export class CutDisk {
  #names = new Map<string, Inode>();
  #flushedNames = new Map<string, Inode>();

  apply({ name, path, target, bytes, position, flags }: FileOperation): void {
    const file = this.#names.get(basename(path));
    if (name === "open" && flags === "wx+")
      this.#names.set(basename(path), { flushed: Buffer.alloc(0), pending: [] });
    if (name === "file.write" && file !== undefined && bytes !== undefined)
      file.pending.push({ at: position ?? 0, bytes });
    if (name === "file.flush" && file !== undefined) {
      file.flushed = file.pending.reduce((content, write) => put(content, write, () => true), file.flushed);
      file.pending = [];
    }
    if ((name === "link" || name === "rename") && file !== undefined)
      this.#names.set(basename(target ?? ""), file);
    if (name === "rename" || name === "unlink") this.#names.delete(basename(path));
    if (name === "flushDirectory") this.#flushedNames = new Map(this.#names);
  }

  /** A disk of its own that goes on from the same state. */
  clone(): CutDisk {
    const copies = new Map<Inode, Inode>();
    const copy = (names: ReadonlyMap<string, Inode>): Map<string, Inode> =>
      new Map(
        [...names].map(([name, file]) => {
          const found = copies.get(file) ?? { flushed: file.flushed, pending: [...file.pending] };
          copies.set(file, found);
          return [name, found];
        }),
      );
    const disk = new CutDisk();
    disk.#names = copy(this.#names);
    disk.#flushedNames = copy(this.#flushedNames);
    return disk;
  }

  /** The power fails: makes the files as they may be found. What is found is on the disk for good. */
  cut(dir: string, random: Random): void {
    const mode = random();
    const found = new Map<string, Inode>();
    for (const name of new Set([...this.#names.keys(), ...this.#flushedNames.keys()])) {
      const isNew = mode < 0.4 ? false : mode < 0.8 ? true : random() < 0.5;
      const file = (isNew ? this.#names : this.#flushedNames).get(name);
      if (file !== undefined) found.set(name, { flushed: left(file, random), pending: [] });
    }
    this.#names = found;
    this.#flushedNames = new Map(found);
    this.kill(dir);
  }

  /**
   * The process is killed: makes the files with everything that was written, flushed or not. Their owner is gone, and
   * this process is another: no lock binds.
   */
  kill(dir: string): void {
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir);
    for (const [name, { flushed, pending }] of this.#names) {
      const content = pending.reduce((before, write) => put(before, write, () => true), flushed);
      const found = name.startsWith("lock") ? unlocked(content) : content;
      if (found !== undefined) writeFileSync(join(dir, name), found);
    }
  }
}

function left({ flushed, pending }: Inode, random: Random): Buffer {
  const share = random() < 0.3 ? 1 : random();
  const content = pending.reduce((before, write) => put(before, write, () => random() < share), flushed);
  if (share === 1 || content.length <= flushed.length || random() >= 0.3) return content;
  return content.subarray(0, flushed.length + Math.floor(random() * (content.length - flushed.length)));
}

/** The content after a write of which only some sectors arrived. */
function put(content: Buffer, write: Inode["pending"][number], arrives: () => boolean): Buffer {
  const end = write.at + write.bytes.length;
  const grown = Buffer.alloc(Math.max(content.length, end));
  content.copy(grown);
  for (let sector = write.at - (write.at % SECTOR_BYTES); sector < end; sector += SECTOR_BYTES) {
    const from = Math.max(sector, write.at);
    const to = Math.min(sector + SECTOR_BYTES, end);
    if (arrives()) write.bytes.copy(grown, from, from - write.at, to - write.at);
  }
  return grown;
}

function unlocked(content: Buffer): Buffer | undefined {
  const lock = decodeLock(content);
  return lock && encodeLock({ ...lock, state: "closed" });
}
