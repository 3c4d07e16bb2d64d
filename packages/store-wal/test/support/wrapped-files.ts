import type { FileLayer, OpenFile } from "../../src/file-layer.ts";
import { nodeFiles } from "../../src/node-file-layer.ts";

/** One file operation, before it runs. */
export interface FileOperation {
  readonly name: keyof FileLayer | `file.${keyof OpenFile}`;
  readonly path: string;
  /** Second path of link and rename. */
  readonly target?: string | undefined;
  /** What a write writes. */
  readonly bytes?: Buffer | undefined;
  readonly position?: number | undefined;
  /** The flags of an open. */
  readonly flags?: string | undefined;
}

/** Runs an operation, or something instead of it. */
export type Intercept = (operation: FileOperation, run: () => Promise<unknown>) => Promise<unknown>;

/** The real file layer with every asynchronous operation going through `intercept`. */
export function wrappedFiles(intercept: Intercept, platform: NodeJS.Platform = process.platform): FileLayer {
  const through = <T>(operation: FileOperation, run: () => Promise<T>): Promise<T> =>
    intercept(operation, run) as Promise<T>;
  return {
    platform,
    exists: (path) => nodeFiles.exists(path),
    open: (path, flags) =>
      through({ name: "open", path, flags }, async () =>
        wrappedFile(path, await nodeFiles.open(path, flags), through),
      ),
    makeDirectory: (path) => through({ name: "makeDirectory", path }, () => nodeFiles.makeDirectory(path)),
    list: (path) => through({ name: "list", path }, () => nodeFiles.list(path)),
    link: (path, target) => through({ name: "link", path, target }, () => nodeFiles.link(path, target)),
    rename: (path, target) => through({ name: "rename", path, target }, () => nodeFiles.rename(path, target)),
    unlink: (path) => through({ name: "unlink", path }, () => nodeFiles.unlink(path)),
    flushDirectory: (path) => through({ name: "flushDirectory", path }, () => nodeFiles.flushDirectory(path)),
    freeBytes: (path) => through({ name: "freeBytes", path }, () => nodeFiles.freeBytes(path)),
  };
}

function wrappedFile(
  path: string,
  file: OpenFile,
  through: <T>(operation: FileOperation, run: () => Promise<T>) => Promise<T>,
): OpenFile {
  return {
    read: (target, at, length, position) =>
      through({ name: "file.read", path, position }, () => file.read(target, at, length, position)),
    write: (source, length, position) => {
      const bytes = Buffer.from(source.subarray(0, length));
      return through({ name: "file.write", path, bytes, position }, () =>
        file.write(bytes, length, position),
      );
    },
    flush: () => through({ name: "file.flush", path }, () => file.flush()),
    identity: () => through({ name: "file.identity", path }, () => file.identity()),
    size: () => through({ name: "file.size", path }, () => file.size()),
    close: () => through({ name: "file.close", path }, () => file.close()),
  };
}

/** An error as Node's file system has it. */
export function errno(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code });
}

/** True for the files that hold frames. */
export function isSegment(path: string): boolean {
  return path.endsWith(".log");
}
