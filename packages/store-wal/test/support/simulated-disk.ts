import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { FileLayer } from "../../src/file-layer.ts";
import { wrappedFiles, type FileOperation } from "./wrapped-files.ts";

interface Inode {
  bytes: Buffer;
  flushed: Buffer;
}

/**
 * What a sequence of file operations leaves on disk: after a kill everything that was done, after a power cut
 * only what was flushed. Both are right answers of a real disk.
 */
export class SimulatedDisk {
  readonly #names = new Map<string, Inode>();
  #flushedNames = new Map<string, Inode>();

  /** A disk that has the files of a directory, all of them flushed. */
  static of(dir: string): SimulatedDisk {
    const disk = new SimulatedDisk();
    for (const name of readdirSync(dir)) {
      const bytes = readFileSync(join(dir, name));
      disk.#names.set(name, { bytes, flushed: bytes });
    }
    disk.#flushedNames = new Map(disk.#names);
    return disk;
  }

  apply({ name, path, target, bytes, position, flags }: FileOperation): void {
    const file = this.#names.get(basename(path));
    if (name === "open" && flags === "wx+")
      this.#names.set(basename(path), { bytes: Buffer.alloc(0), flushed: Buffer.alloc(0) });
    if (name === "file.write" && file !== undefined && bytes !== undefined) {
      const grown = Buffer.alloc(Math.max(file.bytes.length, (position ?? 0) + bytes.length));
      file.bytes.copy(grown);
      bytes.copy(grown, position ?? 0);
      file.bytes = grown;
    }
    if (name === "file.flush" && file !== undefined) file.flushed = file.bytes;
    if ((name === "link" || name === "rename") && file !== undefined)
      this.#names.set(basename(target ?? ""), file);
    if (name === "rename" || name === "unlink") this.#names.delete(basename(path));
    if (name === "flushDirectory") this.#flushedNames = new Map(this.#names);
  }

  /** Makes the files as they would be found, the locks left out: this process lives. */
  materialize(dir: string, after: "kill" | "power cut"): void {
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir);
    const names = after === "kill" ? this.#names : this.#flushedNames;
    for (const [name, { bytes, flushed }] of names) {
      if (!name.startsWith("lock")) writeFileSync(join(dir, name), after === "kill" ? bytes : flushed);
    }
  }
}

const changing = new Set(["open", "file.write", "file.flush", "link", "rename", "unlink", "flushDirectory"]);

/** A file layer that remembers every operation that changes the disk, when it has been done. */
export function recordedFiles(): { files: FileLayer; operations: FileOperation[] } {
  const operations: FileOperation[] = [];
  const files = wrappedFiles(async (operation, run) => {
    const outcome = await run();
    if (changing.has(operation.name) && (operation.name !== "open" || operation.flags === "wx+"))
      operations.push(operation);
    return outcome;
  });
  return { files, operations };
}
