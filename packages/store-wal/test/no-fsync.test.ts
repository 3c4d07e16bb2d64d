import { expect, test } from "vitest";
import { churnUntil, segmentsIn, small } from "./support/churn.ts";
import { openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { recordedFiles, SimulatedDisk } from "./support/simulated-disk.ts";
import { quickTempDir, tempDir } from "./support/temp-dir.ts";
import { isSegment } from "./support/wrapped-files.ts";

const tasks = Array.from({ length: 20 }, (_, index) => `t${index}`);

test(
  "without fsync, a power cut after compaction takes no task that was durable before",
  { timeout: 120_000 },
  async () => {
    const dir = quickTempDir();
    const { files, operations } = recordedFiles();
    const { store: first } = await openStore(dir, { files });
    for (const taskId of tasks) await first.create(record(taskId));
    await first.close();
    const durableAt = operations.length;

    const { store } = await openStore(dir, { ...small, files, fsync: false });
    const [old = ""] = segmentsIn(dir);
    for (let version = 1; version <= 3; version += 1)
      for (const taskId of tasks) await store.update(taskId, { progress: { done: version } }, version);
    await churnUntil(store, () => !segmentsIn(dir).includes(old), "the segment of the first opening is gone");

    const cut = quickTempDir();
    const disk = new SimulatedDisk();
    for (const [step, operation] of operations.entries()) {
      disk.apply(operation);
      const isCut = operation.name === "unlink" || operation.name === "flushDirectory";
      if (step < durableAt || !isCut) continue;
      disk.materialize(cut, "power cut");
      const { store: trial } = await openStore(cut);
      for (const taskId of tasks) expect(await trial.get(taskId), `${taskId} after ${step}`).toBeDefined();
      await trial.close();
    }
  },
);

test("without fsync, close() makes the log durable before it says where the log ends", async () => {
  const dir = tempDir();
  const { files, operations } = recordedFiles();
  const { store } = await openStore(dir, { files, fsync: false });
  await store.create(record("a"));
  await store.update("a", { scope: "x" }, 1);
  const open = operations.length;
  await store.close();
  const closing = operations.slice(open);
  const flushed = closing.findIndex(({ name, path }) => name === "file.flush" && isSegment(path));
  const vouched = closing.findIndex(({ name, path }) => name === "file.write" && path.includes("lock."));
  expect(flushed).toBeGreaterThanOrEqual(0);
  expect(vouched).toBeGreaterThan(flushed);
});
