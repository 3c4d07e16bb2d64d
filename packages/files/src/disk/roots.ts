import { isLongJobsError } from "@longjobs/core";
import { DigestCache } from "./digest-cache.ts";
import { diskErrors, quote } from "./disk-errors.ts";
import { type DiskFiles, diskFiles, errnoOf } from "./disk-files.ts";
import type { FilePin } from "./file-pin.ts";
import type { OpenDirectory } from "./open-directory.ts";
import { openRegular } from "./open-regular.ts";
import { assertOutsideRoots } from "./outside-roots.ts";
import { parsePath } from "./parse-location.ts";
import { toPathError } from "./path-errors.ts";
import { PinnedFile } from "./pinned-file.ts";
import type { RootOptions } from "./root-options.ts";
import { Root, type RootRight } from "./root.ts";
import { type SweepOptions, type SweepResult, sweepRoot } from "./sweep-temporaries.ts";
import { type FileLocation, Target } from "./target.ts";

export type { FileLocation, Target } from "./target.ts";

/** How the parents of a target are treated. */
export interface TargetOptions {
  /** Make the parents that are missing, instead of refusing the path. @default false */
  readonly createParents?: boolean;
}

interface ParsedLocation {
  readonly root: Root;
  readonly parents: readonly string[];
  readonly name: string;
}

/** Makes the roots from their options; a bad option is a `TypeError`. Touches no disk. */
export function createRoots(roots: Readonly<Record<string, RootOptions>>, files?: DiskFiles): Roots {
  return new Roots(roots, files);
}

/**
 * The named roots. Everything a client names goes through here; a refusal is `path_not_allowed`, and names no path
 * but the one that the client named.
 */
export class Roots {
  readonly #roots: ReadonlyMap<string, Root>;
  readonly #files: DiskFiles;
  readonly #digests = new DigestCache();
  /** What a call of this process leaves behind it removes itself: one walk finds what others left. */
  #isSwept = false;

  constructor(roots: Readonly<Record<string, RootOptions>>, files: DiskFiles = diskFiles) {
    this.#roots = new Map(Object.entries(roots).map(([name, options]) => [name, new Root(name, options)]));
    this.#files = files;
  }

  /** The names of the roots with this right. */
  names(right: RootRight): string[] {
    return [...this.#roots.values()].filter((root) => root.grants(right)).map(({ name }) => name);
  }

  /**
   * Rejects with a `TypeError` when a root is no directory, or holds one of these directories, or lies inside one.
   * The keys are what the directories are called in the message.
   */
  check(directories: Readonly<Record<string, string>>): Promise<void> {
    return assertOutsideRoots(this.#files, [...this.#roots.values()], directories);
  }

  /** Opens a regular file for reading. With `pin`, `source_changed` unless it still has that content. */
  async openSource(location: FileLocation, { pin }: { pin?: FilePin } = {}): Promise<PinnedFile> {
    const { root, parents, name } = this.#parse(location, "read");
    try {
      await using directory = await root.walk(this.#files, parents);
      const file = await openRegular(this.#files, directory, name);
      try {
        // As the disk spells it: where two spellings are one name, a pattern holds for both.
        const spelled = [...directory.names, await directory.spelling(name, file)];
        if (root.isDenied(spelled)) throw denied(location);
      } catch (error) {
        await file.close();
        throw error;
      }
      return await PinnedFile.open(file, { pin, digests: this.#digests });
    } catch (error) {
      if (pin !== undefined && isGone(error)) throw diskErrors.sourceChanged(error);
      throw toPathError(error, location);
    }
  }

  /** Opens the parent directory of a file to be; the caller closes the target. */
  async resolveTarget(
    location: FileLocation,
    { createParents = false }: TargetOptions = {},
  ): Promise<Target> {
    const { root, parents, name } = this.#parse(location, "write");
    const { fileMode, isDenied } = root;
    try {
      const directory = await root.walk(
        this.#files,
        parents,
        createParents ? (parent, child) => this.#makeDirectory(root, parent, child) : undefined,
      );
      if (isDenied([...directory.names, name])) {
        await directory.close();
        throw denied(location);
      }
      return new Target({ files: this.#files, directory, location, name, fileMode, isDenied });
    } catch (error) {
      throw toPathError(error, location);
    }
  }

  /** Refuses what `resolveTarget` would refuse, and makes nothing. Resolves to whether the target exists now. */
  async checkTarget(location: FileLocation, { createParents = false }: TargetOptions = {}): Promise<boolean> {
    try {
      await using target = await this.resolveTarget(location);
      return await target.exists();
    } catch (error) {
      const { cause } = error as { readonly cause?: unknown };
      const isMissing = isLongJobsError(error, "path_not_allowed") && errnoOf(cause) === "ENOENT";
      if (createParents && isMissing) return false;
      throw error;
    }
  }

  /**
   * Removes what copies left behind that were cut short, in all roots that can be written. Walks the roots at its first
   * call, and later only while the last walk found `young` ones: they may still be in use.
   */
  async sweepTemporaries(options: SweepOptions = {}): Promise<SweepResult> {
    if (this.#isSwept) return { removed: 0, young: 0 };
    let removed = 0;
    let young = 0;
    for (const root of this.#roots.values()) {
      if (!root.grants("write")) continue;
      const found = await sweepRoot(this.#files, root, options);
      removed += found.removed;
      young += found.young;
    }
    this.#isSwept = young === 0;
    return { removed, young };
  }

  #parse(location: FileLocation, right: RootRight): ParsedLocation {
    const root = this.#roots.get(location.root);
    if (root?.grants(right) !== true) {
      const names = this.names(right);
      throw diskErrors.pathNotAllowed(
        `There is no root ${quote(location.root)} to ${right === "read" ? "read from" : "write to"}.`,
        names.length === 0 ? undefined : `Name one of these roots: ${names.join(", ")}.`,
      );
    }
    const names = parsePath(location.path, this.#files.platform);
    if (root.isDenied(names)) throw denied(location);
    return { root, parents: names.slice(0, -1), name: names.at(-1) ?? "" };
  }

  async #makeDirectory(root: Root, parent: OpenDirectory, name: string): Promise<void> {
    try {
      await this.#files.mkdir(parent.entry(name), root.directoryMode);
    } catch (error) {
      // Somebody else made it first; opening it tells whether it is a directory.
      if (errnoOf(error) !== "EEXIST") throw error;
    }
    await parent.flush();
  }
}

function denied({ root, path }: FileLocation): Error {
  return diskErrors.pathNotAllowed(
    `${quote(path)} in the root ${quote(root)} is not for clients.`,
    "Name another file.",
  );
}

/** Errors that say that a file which was there is not any more, or that something else has its name. */
function isGone(error: unknown): boolean {
  return ["ENOENT", "ELOOP", "ENOTDIR", "EISDIR", "ESTALE"].includes(errnoOf(error) ?? "");
}
