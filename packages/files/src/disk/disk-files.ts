import * as fs from "node:fs/promises";

/**
 * Every operation of the disk layer that names a path. Tests put faults here; the one real implementation is
 * Node's. What is done to an open file goes through its handle.
 */
export interface DiskFiles extends Pick<
  typeof fs,
  | "chmod"
  | "link"
  | "lstat"
  | "mkdir"
  | "open"
  | "opendir"
  | "readlink"
  | "realpath"
  | "rename"
  | "statfs"
  | "unlink"
> {
  readonly platform: NodeJS.Platform;
}

/** The real file system. */
export const diskFiles: DiskFiles = { ...fs, platform: process.platform };

/** The errno of a failed file operation. */
export function errnoOf(error: unknown): string | undefined {
  const code: unknown = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : undefined;
}

/** An error of this layer that looks like one of the system: no message of it goes to a client. */
export function systemError(code: "EISDIR" | "ELOOP" | "ENOTDIR" | "ESTALE", message: string): Error {
  return Object.assign(new Error(`${code}: ${message}`), { code });
}

/** Resolves to `undefined` instead of rejecting when there is no such file. */
export async function ifExists<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

/** Makes the names in a directory durable. Windows has no such call: its journal keeps names. */
export async function flushDirectory(files: DiskFiles, path: string): Promise<void> {
  if (files.platform === "win32") return;
  const directory = await files.open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
