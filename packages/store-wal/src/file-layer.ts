/**
 * Everything the store does to files. Tests put faults, recordings and delays here; the one real
 * implementation is `node-file-layer.ts`. Failures are Node's errors, with their errno in `code`.
 */
export interface FileLayer {
  readonly platform: string;
  /** `r` reads, `r+` also writes, `wx+` makes a new file with mode 0600 or fails with EEXIST. */
  open(path: string, flags: "r" | "r+" | "wx+"): Promise<OpenFile>;
  /** Makes the directory and its missing parents with mode 0700; resolves to the first one made, if any. */
  makeDirectory(path: string): Promise<string | undefined>;
  /** The names in a directory. */
  list(path: string): Promise<string[]>;
  /** Whether a path exists. Synchronous: it is asked after every flush, and costs less than a turn of the loop. */
  exists(path: string): boolean;
  link(existing: string, path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  unlink(path: string): Promise<void>;
  /** Makes the names in a directory durable. */
  flushDirectory(path: string): Promise<void>;
  /** Bytes that an unprivileged process may still write to this file system. */
  freeBytes(path: string): Promise<number>;
}

/** One open file; every access names its position. */
export interface OpenFile {
  /** Resolves to the number of bytes read; 0 at the end of the file. */
  read(target: Uint8Array, at: number, length: number, position: number): Promise<number>;
  /** Writes the first `length` bytes of `source`; resolves to the number written, which may be smaller. */
  write(source: Uint8Array, length: number, position: number): Promise<number>;
  /** Makes the written bytes durable. */
  flush(): Promise<void>;
  size(): Promise<number>;
  /** Device and inode: equal for two names of one file, different for a copy. */
  identity(): Promise<string>;
  close(): Promise<void>;
}

/** The errno of a failed file operation. */
export function errnoOf(error: unknown): string | undefined {
  const code: unknown = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : undefined;
}

/** True when the disk or the quota is full. */
export function isNoSpace(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOSPC" || errno === "EDQUOT";
}

/** Reads until `length` bytes are there or the file ends; resolves to how many. */
export async function readFully(
  file: OpenFile,
  target: Uint8Array,
  length: number,
  position: number,
): Promise<number> {
  let done = 0;
  while (done < length) {
    const count = await file.read(target, done, length - done, position + done);
    if (count === 0) break;
    done += count;
  }
  return done;
}

/** One write of all bytes; a short one is a failure, because the store never writes the same place twice. */
export async function writeFully(file: OpenFile, source: Uint8Array, position: number): Promise<void> {
  const written = await file.write(source, source.length, position);
  if (written !== source.length) throw new ShortWriteError(written, source.length);
}

/** A write that ended early: the file has part of it. */
export class ShortWriteError extends Error {
  override readonly name = "ShortWriteError";
  constructor(written: number, wanted: number) {
    super(`Only ${written} of ${wanted} bytes were written.`);
  }
}

/** Windows has no flush for directories; its journal keeps names. Elsewhere a failure is a failure. */
export async function flushDirectory(files: FileLayer, path: string): Promise<void> {
  try {
    await files.flushDirectory(path);
  } catch (error) {
    const errno = errnoOf(error);
    if (files.platform === "win32" && (errno === "EPERM" || errno === "EISDIR" || errno === "EACCES")) return;
    throw error;
  }
}

/** A virus scanner may hold a file for a moment on Windows: these errors of rename and unlink pass. */
const passing = new Set(["EPERM", "EACCES", "EBUSY"]);
const attempts = 5;

/** Runs a rename or unlink, again after an error that may pass, at most {@link attempts} times. */
export async function persist(operation: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await operation();
    } catch (error) {
      if (attempt >= attempts || !passing.has(errnoOf(error) ?? "")) throw error;
      await new Promise((resume) => setTimeout(resume, attempt * 10));
    }
  }
}
