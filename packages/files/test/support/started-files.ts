import { mkdtemp, mkdir, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { MemoryTaskStore, type TaskStore } from "@longjobs/core";
import { afterEach, expect } from "vitest";

import { createFiles, type Files, type FilesOptions } from "../../src/index.ts";

/** A clock that stands still until it is moved. */
export interface TestClock {
  readonly now: () => number;
  readonly advance: (ms: number) => void;
}

export function startClock(): TestClock {
  let nowMs = Date.UTC(2026, 6, 28);
  return {
    now: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}

/** Files over a fresh directory with one root `box`, and what they reported in the background. */
export interface StartedFiles {
  readonly files: Files;
  readonly store: TaskStore;
  readonly dir: string;
  /** The directory of the root `box`. */
  readonly box: string;
  readonly staging: string;
  readonly errors: unknown[];
  /** Another instance over the same store and the same directories. */
  readonly second: (options?: Partial<FilesOptions>) => StartedFiles;
}

let started: StartedFiles[] = [];
let dirs: string[] = [];

/** A directory that is removed after the test. */
export async function makeDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "longjobs-files-"));
  dirs.push(dir);
  return dir;
}

/** Files that everyone shares unless `scope` is given. They are closed after the test, which fails if they leak or report. */
export async function startFiles(options: Partial<FilesOptions> = {}): Promise<StartedFiles> {
  const dir = await makeDir();
  await mkdir(join(dir, "box"));
  const clock = options.now === undefined ? {} : { now: options.now };
  return startOver(dir, { store: new MemoryTaskStore(clock), ...options });
}

function startOver(
  dir: string,
  options: Partial<FilesOptions> & { readonly store: TaskStore },
): StartedFiles {
  const errors: unknown[] = [];
  const [box, staging] = [join(dir, "box"), join(dir, "staging")];
  const files = createFiles({
    scope: null,
    staging,
    roots: { box: { path: box, write: true } },
    sweepIntervalMs: null,
    onError: (error) => errors.push(error),
    ...options,
  });
  const second = (others: Partial<FilesOptions> = {}): StartedFiles =>
    startOver(dir, { ...options, ...others });
  const entry = { files, store: options.store, dir, box, staging, errors, second };
  started.push(entry);
  return entry;
}

/** Takes what was reported so far. */
export function takeErrors({ errors }: StartedFiles): unknown[] {
  return errors.splice(0);
}

/** The names in a directory, hidden ones too; none when it is not there. */
export async function namesIn(dir: string): Promise<string[]> {
  try {
    return (await readdir(dir, { recursive: true })).toSorted();
  } catch {
    return [];
  }
}

afterEach(async () => {
  const [all, made] = [started, dirs];
  [started, dirs] = [[], []];
  for (const { files } of all) await files.close();
  for (const { files, errors } of all) {
    expect(files.stats()).toEqual({ writers: 0, digests: 0 });
    expect(errors, "reported in the background, and not expected").toEqual([]);
  }
  for (const dir of made) await rm(dir, { recursive: true, force: true });
});
