import * as fs from "node:fs";
import type { FileLayer, OpenFile } from "./file-layer.ts";

/** The real file system. Callbacks instead of `fs/promises`: a write path of a few microseconds notices. */
export const nodeFiles: FileLayer = {
  platform: process.platform,

  open: (path, flags) =>
    new Promise((resolve, reject) => {
      fs.open(path, flags, 0o600, (error, fd) =>
        error === null ? resolve(new NodeFile(fd)) : reject(error),
      );
    }),

  makeDirectory: (path) => fs.promises.mkdir(path, { recursive: true, mode: 0o700 }),
  list: (path) => fs.promises.readdir(path),
  exists: (path) => fs.existsSync(path),
  link: (existing, path) => fs.promises.link(existing, path),
  rename: (from, to) => fs.promises.rename(from, to),
  unlink: (path) => fs.promises.unlink(path),

  async flushDirectory(path) {
    const directory = await fs.promises.open(path, "r");
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  },

  async freeBytes(path) {
    const { bavail, bsize } = await fs.promises.statfs(path);
    return bavail * bsize;
  },
};

class NodeFile implements OpenFile {
  readonly #fd: number;

  constructor(fd: number) {
    this.#fd = fd;
  }

  read(target: Uint8Array, at: number, length: number, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.read(this.#fd, target, at, length, position, (error, count) =>
        error === null ? resolve(count) : reject(error),
      );
    });
  }

  write(source: Uint8Array, length: number, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.write(this.#fd, source, 0, length, position, (error, count) =>
        error === null ? resolve(count) : reject(error),
      );
    });
  }

  flush(): Promise<void> {
    return this.#settle((done) => fs.fdatasync(this.#fd, done));
  }

  size(): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.fstat(this.#fd, (error, stats) => (error === null ? resolve(stats.size) : reject(error)));
    });
  }

  identity(): Promise<string> {
    return new Promise((resolve, reject) => {
      fs.fstat(this.#fd, { bigint: true }, (error, stats) =>
        error === null ? resolve(`${stats.dev}:${stats.ino}`) : reject(error),
      );
    });
  }

  close(): Promise<void> {
    return this.#settle((done) => fs.close(this.#fd, done));
  }

  #settle(run: (done: (error: Error | null | undefined) => void) => void): Promise<void> {
    return new Promise((resolve, reject) => run((error) => (error ? reject(error) : resolve())));
  }
}
