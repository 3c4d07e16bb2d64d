import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runTaskStoreConformance, type StoreUnderTest } from "@longjobs/conformance";
import { describe, it } from "vitest";
import { WalTaskStore } from "../src/index.ts";
import { copyWithoutLocks, mortalFiles, type MortalFiles } from "./support/crash-store.ts";

async function makeStore(): Promise<StoreUnderTest> {
  const root = mkdtempSync(join(tmpdir(), "store-wal-"));
  let nowMs = Date.now();
  let lives = 0;
  let dir = join(root, "0");
  let current: { store: WalTaskStore; mortal: MortalFiles };
  const open = async (): Promise<WalTaskStore> => {
    const mortal = mortalFiles();
    const { files } = mortal;
    // What fails in the background while the disk fails is no finding.
    const onError = (): void => {};
    const store = await WalTaskStore.open({ dir, now: () => nowMs, reserveBytes: null, files, onError });
    current = { store, mortal };
    return store;
  };
  return {
    store: await open(),
    advanceTime: (ms) => void (nowMs += ms),
    reopen: async () => {
      await current.store.close();
      return open();
    },
    crash: async () => {
      await current.mortal.die();
      const left = dir;
      lives += 1;
      dir = join(root, String(lives));
      copyWithoutLocks(left, dir);
      return open();
    },
    fault: () => current.mortal.fail(),
    dispose: async () => {
      await current.store.close();
      rmSync(root, { recursive: true });
    },
  };
}

runTaskStoreConformance("WalTaskStore", makeStore, {
  runner: { describe, it, skip: it.skip },
  profile: "durable",
});
