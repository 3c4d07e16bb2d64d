import { join } from "node:path";
import { Upload } from "@tus/server";
import type { DiskFiles } from "../../../src/disk/disk-files.ts";
import { StagingStore, type StagingStoreOptions } from "../../../src/disk/staging-store.ts";
import { streamOf } from "./bytes.ts";
import { tempDir } from "./temp-dir.ts";

/** A staging store in a directory of its own. */
export function openStaging(options: Partial<StagingStoreOptions> = {}, files?: DiskFiles): StagingStore {
  return new StagingStore({ dir: join(tempDir(), "staging"), ...options }, files);
}

/** Declares an upload; without a size it is not known yet. */
export async function declare(store: StagingStore, id: string, size?: number): Promise<void> {
  await store.create(new Upload({ id, offset: 0, ...(size === undefined ? {} : { size }) }));
}

/** Stages these bytes as a whole. */
export async function stage(store: StagingStore, id: string, bytes: Uint8Array): Promise<void> {
  await declare(store, id, bytes.length);
  await store.write(streamOf(bytes), id, 0);
}
