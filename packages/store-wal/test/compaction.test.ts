import { join } from "node:path";
import type { TaskRecord } from "@longjobs/core";
import { expect, test } from "vitest";
import { churnUntil, segmentsIn, small } from "./support/churn.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { recordedFiles, SimulatedDisk } from "./support/simulated-disk.ts";
import { quickTempDir, tempDir } from "./support/temp-dir.ts";
import { waitUntil } from "./support/wait-until.ts";
import { errno, isSegment, wrappedFiles } from "./support/wrapped-files.ts";

for (const after of ["kill", "power cut"] as const) {
  test(
    `a ${after} at any step of a load with compaction leaves every acknowledged state (P41)`,
    { timeout: 120_000 },
    async () => {
      const root = quickTempDir();
      const { files, operations } = recordedFiles();
      const tiny = { segmentBytes: 8 * 1024, compactionFloorBytes: 4 * 1024, reserveBytes: 64 * 1024 };
      let nowMs = 1_000_000;
      const { store } = await openStore(join(root, "log"), { ...tiny, files, now: () => nowMs });
      // What was acknowledged, and after how many operations.
      const acknowledged: { at: number; taskId: string; state: TaskRecord | undefined }[] = [];
      const done = async (taskId: string): Promise<void> => {
        acknowledged.push({ at: operations.length, taskId, state: await store.get(taskId) });
      };
      for (const taskId of ["a", "b", "c", "d"]) {
        await store.create(record(taskId, { result: bigResult(700), ttlMs: taskId === "d" ? 1_000 : null }));
        await done(taskId);
      }
      for (let version = 1; version <= 25; version += 1) {
        for (const taskId of ["a", "b", "c"]) {
          const result = version % 8 === 0 ? { result: bigResult(600 + version) } : {};
          await store.update(taskId, { progress: { done: version }, ...result }, version);
          await done(taskId);
        }
        if (version === 10) {
          nowMs += 1_000;
          await store.sweep();
          await done("d");
        }
      }
      await waitUntil(
        () => operations.some(({ name, path }) => name === "unlink" && isSegment(path)),
        "compaction has deleted a file",
      );
      await store.close();

      const disk = new SimulatedDisk();
      const dir = join(root, "trial");
      let state = new Map<string, TaskRecord | undefined>();
      for (const [step, operation] of operations.entries()) {
        disk.apply(operation);
        disk.materialize(dir, after);
        state = new Map(
          acknowledged.filter(({ at }) => at <= step + 1).map(({ taskId, state: one }) => [taskId, one]),
        );
        // The clock of before the sweep: only the log can say that the task is gone.
        const { store: trial, errors } = await openStore(dir, {
          ...tiny,
          reserveBytes: null,
          cacheBytes: 0,
          now: () => 1_000_000,
        });
        const context = `after ${step + 1} operations, the last ${operation.name} ${operation.path}`;
        expect(errors, context).toEqual([]);
        for (const [taskId, known] of state) {
          const found = await trial.get(taskId);
          if (known === undefined) expect(found, context).toBeUndefined();
          else if (found?.version === known.version) expect(found, context).toEqual(known);
          else if (taskId === "d") expect(found, context).toBeUndefined();
          else
            expect(found, context).toMatchObject({
              version: known.version + 1,
              progress: { done: known.version },
            });
        }
        await trial.close();
      }
      expect(state.get("a")?.version).toBe(26);
    },
  );
}

test("an unlink that is refused twice is tried again (P41)", async () => {
  const dir = tempDir();
  let refusals = 0;
  const files = wrappedFiles(({ name, path }, run) => {
    if (name !== "unlink" || !isSegment(path) || refusals >= 2) return run();
    refusals += 1;
    return Promise.reject(errno("EPERM"));
  });
  const { store, errors } = await openStore(dir, { ...small, files });
  await store.create(record("a"));
  const first = segmentsIn(dir)[0] ?? "";
  await churnUntil(store, () => !segmentsIn(dir).includes(first), "the first segment is gone");
  expect(refusals).toBe(2);
  expect(errors).toEqual([]);
});

test("a compaction that fails is reported, and the store goes on", async () => {
  const dir = tempDir();
  const files = wrappedFiles(({ name, path }, run) =>
    name === "unlink" && isSegment(path) ? Promise.reject(errno("EIO")) : run(),
  );
  const { store, errors } = await openStore(dir, { ...small, files });
  await store.create(record("a"));
  await churnUntil(store, () => errors.length > 0, "the failure is reported");
  const version = (await store.get("churn-0"))?.version;
  expect(errors[0]).toMatchObject({ code: "store_unavailable", cause: { code: "EIO" } });
  expect(await store.get("a")).toEqual(record("a"));
  await store.close();
  const { store: again } = await openStore(dir, small);
  expect((await again.get("churn-0"))?.version).toBe(version);
});

test("a directory that cannot be flushed is tolerated on Windows only (P41)", async () => {
  const refusing = (platform: NodeJS.Platform): ReturnType<typeof wrappedFiles> =>
    wrappedFiles(
      ({ name }, run) => (name === "flushDirectory" ? Promise.reject(errno("EPERM")) : run()),
      platform,
    );
  const { store } = await openStore(tempDir(), { files: refusing("win32") });
  await store.create(record("a"));
  expect(await store.get("a")).toEqual(record("a"));
  const dir = tempDir();
  expect(await codeOf(openStore(dir, { files: refusing("linux") }))).toBe("store_unavailable");
  // Nothing of the failed opening keeps the next one out.
  await openStore(dir);
});
