import type { FileLayer, OpenFile } from "./file-layer.ts";

/** A file layer that only reads: whatever would change the disk rejects before it reaches it. */
export function readOnlyFiles(files: FileLayer, onRead: (bytes: number) => void): FileLayer {
  const refuse = (): Promise<never> =>
    Promise.reject(new Error("A log that is only looked at is not changed."));
  return {
    platform: files.platform,
    open: async (path, flags) =>
      flags === "r" ? readOnlyFile(await files.open(path, "r"), onRead, refuse) : refuse(),
    list: (path) => files.list(path),
    exists: (path) => files.exists(path),
    freeBytes: (path) => files.freeBytes(path),
    makeDirectory: refuse,
    link: refuse,
    rename: refuse,
    unlink: refuse,
    flushDirectory: refuse,
  };
}

function readOnlyFile(
  file: OpenFile,
  onRead: (bytes: number) => void,
  refuse: () => Promise<never>,
): OpenFile {
  return {
    read: async (target, at, length, position) => {
      const count = await file.read(target, at, length, position);
      onRead(count);
      return count;
    },
    size: () => file.size(),
    identity: () => file.identity(),
    close: () => file.close(),
    write: refuse,
    flush: refuse,
  };
}
