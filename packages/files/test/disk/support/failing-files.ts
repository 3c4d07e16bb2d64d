import type { FileHandle } from "node:fs/promises";
import { type DiskFiles, diskFiles } from "../../../src/disk/disk-files.ts";

/** One operation: of the file system, or `handle.` and one of an open file; with the path it names. */
export interface DiskOperation {
  readonly name: string;
  readonly path: string;
  /** What it was called with. */
  readonly given: readonly unknown[];
}

/** Runs before each operation; what it throws is what the operation rejects with. */
export type BeforeOperation = (operation: DiskOperation) => void | Promise<void>;

/** The real file system, with a look at every operation before it happens. */
export function watchedFiles(before: BeforeOperation, platform?: NodeJS.Platform): DiskFiles {
  const watch = (target: object, prefix: string, pathOf: (given: unknown[]) => string): object =>
    new Proxy(target, {
      get(from, name) {
        const value: unknown = Reflect.get(from, name, from);
        if (typeof value !== "function") return value;
        return async (...given: unknown[]): Promise<unknown> => {
          const path = pathOf(given);
          const operation = typeof name === "string" ? name : "close";
          // An open file is closed also when everything else fails: a process that dies closes its files.
          if (operation === "once") return Reflect.apply(value, from, given);
          if (operation !== "close") await before({ name: `${prefix}${operation}`, path, given });
          const result: unknown = await (value as (...all: unknown[]) => unknown).apply(from, given);
          return operation === "open" && prefix === ""
            ? watch(result as FileHandle, "handle.", () => path)
            : result;
        };
      },
    });
  const files = watch(diskFiles, "", ([path, second]) =>
    typeof second === "string" && second.includes("/") ? `${String(path)} ${second}` : String(path),
  ) as DiskFiles;
  return new Proxy(files, {
    get: (from, name) =>
      name === "platform" ? (platform ?? diskFiles.platform) : (Reflect.get(from, name) as unknown),
  });
}

/** An error as the system gives it. */
export function errnoError(code: string): Error {
  return Object.assign(new Error(`${code}: injected`), { code, errno: -1, syscall: "injected" });
}
