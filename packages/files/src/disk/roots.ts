import type { FilePin, PinnedFile } from "./pinned-file.ts";

/** One directory that clients may name. */
export interface RootOptions {
  /** Absolute. */
  readonly path: string;
  /** Whether clients may download from it. @default true */
  readonly read?: boolean;
  /** Whether clients may publish into it. @default false */
  readonly write?: boolean;
  /**
   * Paths that are refused, whatever the case of their letters: `*` and `?` within a name, `**` for any number of
   * names. A pattern without a slash is compared with each name of a path, others with the path from the root on; what
   * lies under a refused directory is refused.
   */
  readonly deny?: readonly string[];
  /** The mode of published files. @default 0o600 */
  readonly fileMode?: number;
}

/** A file, as clients name it: the name of a root, and a relative path with forward slashes. */
export interface FileLocation {
  readonly root: string;
  readonly path: string;
}

/** Where a file is to be published: its parent directory is held open until `close`. */
export interface Target extends AsyncDisposable {
  readonly location: FileLocation;
  close(): Promise<void>;
}

/** The named roots. Everything a client names goes through here; refusals are `path_not_allowed` and name no absolute path. */
export interface Roots {
  /** The names of the roots with this right. */
  names(right: "read" | "write"): string[];
  /** Rejects with a `TypeError` when a root is no directory, or holds one of these directories, or lies inside one. */
  check(directories: Readonly<Record<string, string>>): Promise<void>;
  /** Opens a regular file for reading. With `pin`, `source_changed` unless it is still that content. */
  openSource(location: FileLocation, options?: { pin?: FilePin }): Promise<PinnedFile>;
  /** Opens the parent directory of a file to be. Missing parents are an error, or are made. */
  resolveTarget(location: FileLocation, options?: { createParents?: boolean }): Promise<Target>;
  /** Removes what copies left behind that were cut short; `young` counts those that may still be in use. */
  sweepTemporaries(options?: { olderThanMs?: number }): Promise<{ removed: number; young: number }>;
}

/** Makes the roots from their options; a bad option is a `TypeError`. Touches no disk. */
export function createRoots(_roots: Readonly<Record<string, RootOptions>>): Roots {
  throw new Error("to come");
}
