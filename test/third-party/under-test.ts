import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { StoreUnderTest, SuiteOptions } from "@longjobs/conformance";
import { FolderTaskStore, maxRecordBytes } from "./folder-task-store.ts";

export const name = "FolderTaskStore";

export const options: SuiteOptions = { profile: "durable" };

export function factory(): StoreUnderTest {
  const folder = mkdtempSync(join(tmpdir(), "folder-task-store-"));
  let nowMs = Date.now();
  const open = (): FolderTaskStore => new FolderTaskStore(folder, () => nowMs);
  const store = open();
  return {
    store,
    maxRecordBytes,
    advanceTime: (ms) => {
      nowMs += ms;
    },
    reopen: async () => {
      await store.close();
      return open();
    },
    crash: open,
    dispose: () => rmSync(folder, { recursive: true }),
  };
}
