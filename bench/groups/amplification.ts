import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { WalTaskStore } from "@longjobs/store-wal";
import { inFolder, summarise } from "../measure.ts";
import { toRatio, type BenchGroup } from "../row.ts";
import { progressPatches, sampleRecord } from "../sample-record.ts";

/** Bytes that the log writes for one progress update, by the size of a field that does not change. */
export const amplification: BenchGroup = async function* ({ progress }) {
  for (const kib of [0, 4, 64, 256, 1_024]) {
    progress(`bytes per progress update beside a field of ${kib} KiB`);
    yield await inFolder(async (dir) => {
      const store = await WalTaskStore.open({ dir, reserveBytes: null });
      const record = { ...sampleRecord(crypto.randomUUID()), data: "x".repeat(kib * 1_024), kind: "bench" };
      await store.create(record);
      const before = await bytesIn(dir);
      let { version } = record;
      const updates = 100;
      for (let done = 0; done < updates; done += 1) {
        version = await store.update(record.taskId, { ...progressPatches[0], progress: { done } }, version);
      }
      const perUpdate = ((await bytesIn(dir)) - before) / updates;
      await store.close();
      return {
        group: "amplification",
        row: `bytes written per progress update, field of ${kib} KiB`,
        unit: "bytes",
        figures: { "longjobs log": summarise([perUpdate]) },
        ratios: kib === 256 ? [toRatio("bytes", perUpdate, "at most", 1_024)] : [],
      };
    });
  }
};

async function bytesIn(dir: string): Promise<number> {
  const sizes = (await readdir(dir, { withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(async ({ name }) => (await stat(join(dir, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
