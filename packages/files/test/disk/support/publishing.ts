import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { publish, type Published, type PublishOptions } from "../../../src/disk/publish.ts";
import { createRoots, type Roots } from "../../../src/disk/roots.ts";
import { StagingStore } from "../../../src/disk/staging-store.ts";
import type { DiskFiles } from "../../../src/disk/disk-files.ts";
import { sha256 } from "./bytes.ts";
import { errnoError, watchedFiles } from "./failing-files.ts";
import { stage } from "./staging.ts";
import { otherDisk, tempDir } from "./temp-dir.ts";

/** A staging directory and a root that is to be published into. */
export interface Press {
  readonly store: StagingStore;
  readonly roots: Roots;
  readonly inside: string;
  /** The names in the root. */
  names(): string[];
  /** Stages these bytes under an id and publishes them as `out.bin`, unless the options say otherwise. */
  print(
    id: string,
    bytes: Uint8Array,
    options?: Partial<PublishOptions> & { path?: string },
  ): Promise<Published>;
  /** Publishes what is staged. */
  reprint(
    id: string,
    bytes: Uint8Array,
    options?: Partial<PublishOptions> & { path?: string },
  ): Promise<Published>;
  read(name: string): Buffer;
}

/** How the staging directory lies to the root. */
export type Disk = "same disk" | "other disk" | "disk without links" | "two mounts of one disk";

/** Those that this machine has or can play. */
export const disks: readonly Disk[] = [
  "same disk",
  ...(otherDisk === undefined ? [] : (["other disk"] as const)),
  "disk without links",
  "two mounts of one disk",
];

/** Where a disk is not as it should be: what it answers to an operation. */
function oddity(disk: Disk, stagingDir: string): (name: string, path: string) => void {
  return (name, path) => {
    if (disk === "disk without links" && name === "link") throw errnoError("EPERM");
    const isAcross = path.startsWith(stagingDir) && (name === "link" || name === "rename");
    if (disk === "two mounts of one disk" && isAcross && !path.includes(".tmp")) throw errnoError("EXDEV");
  };
}

export async function openPress(
  disk: Disk = "same disk",
  before?: (name: string, path: string) => void | Promise<void>,
): Promise<Press> {
  const dir = tempDir();
  const inside = disk === "other disk" ? join(tempDir(otherDisk), "root") : join(dir, "root");
  mkdirSync(inside);
  const stagingDir = join(dir, "staging");
  const odd = oddity(disk, stagingDir);
  const files: DiskFiles = watchedFiles(async ({ name, path }) => {
    await before?.(name, path);
    odd(name, path);
  });
  const store = new StagingStore({ dir: stagingDir });
  await store.open();
  const roots = createRoots({ files: { path: inside, write: true } }, files);
  const reprint: Press["reprint"] = async (id, bytes, { path = "out.bin", ...options } = {}) => {
    await using target = options.target ?? (await roots.resolveTarget({ root: "files", path }));
    return await publish({
      staged: { store, id },
      sizeBytes: bytes.length,
      sha256: sha256(bytes),
      policy: "fail",
      ...options,
      target,
    });
  };
  return {
    store,
    roots,
    inside,
    names: () => readdirSync(inside).toSorted(),
    async print(id, bytes, options) {
      await stage(store, id, bytes);
      return reprint(id, bytes, options);
    },
    reprint,
    read: (name) => readFileSync(join(inside, name)),
  };
}
