import { readdirSync, statSync, writeFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { TaskRecord } from "@longjobs/core";
import { expect, test } from "vitest";
import type { WalTaskStore } from "../src/index.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { recordedFiles, SimulatedDisk } from "./support/simulated-disk.ts";
import { quickTempDir, tempDir } from "./support/temp-dir.ts";
import { waitUntil } from "./support/wait-until.ts";
import { errno, isSegment, wrappedFiles } from "./support/wrapped-files.ts";

const small = { segmentBytes: 16 * 1024, compactionFloorBytes: 16 * 1024 };

const segmentsIn = (dir: string): string[] => readdirSync(dir).filter(isSegment);
const bytesIn = (dir: string): number =>
  segmentsIn(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);

/** Writes the same few tasks again and again, so that nearly everything on disk is superseded. */
async function churn(store: WalTaskStore, updates: number): Promise<void> {
  for (let index = 0; index < 4; index += 1) {
    const taskId = `churn-${index}`;
    let version = (await store.get(taskId))?.version;
    if (version === undefined) await store.create(record(taskId));
    version ??= 1;
    for (let done = 0; done < updates; done += 1)
      version = await store.update(taskId, { progress: { done } }, version);
  }
}

/** Keeps writing until compaction has done something: it runs beside the writes, when they leave enough behind. */
async function churnUntil(store: WalTaskStore, fact: () => boolean, message: string): Promise<void> {
  for (let round = 0; round < 100 && !fact(); round += 1) await churn(store, 30);
  await waitUntil(fact, message);
}

test("superseded frames give their space back in the background, and every task stays as it was", async () => {
  const dir = tempDir();
  const { store, errors } = await openStore(dir, { ...small, cacheBytes: 0 });
  const kept: TaskRecord[] = [];
  for (let index = 0; index < 20; index += 1) {
    kept.push(record(`kept-${index}`, { result: bigResult(index * 100), scope: `s${index}` }));
  }
  for (const one of kept) await store.create(one);
  await churn(store, 200);
  await waitUntil(() => bytesIn(dir) < 120 * 1024, "400 KiB of superseded frames are gone");
  for (const one of kept) expect(await store.get(one.taskId)).toEqual(one);
  await store.close();
  const { store: again, errors: later } = await openStore(dir, small);
  for (const one of kept) expect(await again.get(one.taskId)).toEqual(one);
  expect((await again.get("churn-3"))?.version).toBe(201);
  expect([...errors, ...later]).toEqual([]);
});

test("a large field that many later frames refer to moves with compaction, also for tasks in memory", async () => {
  const dir = tempDir();
  for (const cacheBytes of [0, 1024 * 1024]) {
    const { store, errors } = await openStore(dir, { ...small, cacheBytes });
    const taskId = `big-${cacheBytes}`;
    await store.create(
      record(taskId, { result: bigResult(5_000, "a"), work: { tool: "t", arguments: bigResult(900, "b") } }),
    );
    const first = segmentsIn(dir).at(-1) ?? "";
    await store.update(taskId, { progress: { done: 1 } }, 1);
    await churnUntil(
      store,
      () => !segmentsIn(dir).includes(first),
      "the segment with the large fields is gone",
    );
    expect(await store.update(taskId, { progress: { done: 2 } }, 2)).toBe(3);
    const now = {
      ...record(taskId, { version: 3, progress: { done: 2 } }),
      result: bigResult(5_000, "a"),
      work: { tool: "t", arguments: bigResult(900, "b") },
    };
    expect(await store.get(taskId)).toEqual(now);
    await store.close();
    const { store: again } = await openStore(dir, { ...small, cacheBytes: 0 });
    expect(await again.get(taskId)).toEqual(now);
    await again.close();
    expect(errors).toEqual([]);
  }
});

test("a load of creates alone gives its space back when the tasks have expired, without a call of sweep()", async () => {
  const dir = tempDir();
  let nowMs = 1_000_000;
  const { store } = await openStore(dir, { ...small, now: () => nowMs });
  for (let batch = 0; batch < 10; batch += 1) {
    await Promise.all(
      Array.from({ length: 50 }, (_, index) => store.create(record(`t${batch}-${index}`, { ttlMs: 1_000 }))),
    );
  }
  const full = bytesIn(dir);
  nowMs += 1_000;
  for (let index = 0; index < 60; index += 1) await store.create(record(`new-${index}`));
  await waitUntil(() => bytesIn(dir) < full / 3, "the expired tasks have left the disk");
  for (let index = 0; index < 60; index += 1)
    expect(await store.get(`new-${index}`)).toEqual(record(`new-${index}`));
});

test("a deleted task does not come back when compaction drops its frames in any order and the clock goes back", async () => {
  const dir = tempDir();
  let nowMs = 1_000_000;
  const now = (): number => nowMs;
  for (let round = 0; round < 4; round += 1) {
    const { store } = await openStore(dir, { ...small, now });
    await store.create(record(`forever-${round}`, { result: bigResult(3_000) }));
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        store.create(record(`dead-${round}-${index}`, { ttlMs: 100 })),
      ),
    );
    await churn(store, 60);
    nowMs += 100;
    await store.sweep();
    await churn(store, 60);
    await store.close();
    nowMs -= 100;
    const { store: again } = await openStore(dir, { ...small, now });
    for (let index = 0; index < 20; index += 1)
      expect(await again.get(`dead-${round}-${index}`)).toBeUndefined();
    expect(await again.get("forever-0")).toBeDefined();
    await again.close();
  }
});

test("a deletion outlives its segment while an older segment may still hold the task", async () => {
  const dir = tempDir();
  let nowMs = 1_000_000;
  const now = (): number => nowMs;
  const { store, errors } = await openStore(dir, { ...small, now });
  // The first file stays: nearly all of it is needed.
  await store.create(record("dead", { ttlMs: 100 }));
  for (let index = 0; index < 5; index += 1)
    await store.create(record(`forever-${index}`, { result: bigResult(3_000) }));
  const [oldest = ""] = segmentsIn(dir);
  await churn(store, 10);
  nowMs += 100;
  expect(await store.sweep()).toBe(1);
  const buried = segmentsIn(dir).toSorted().at(-1) ?? "";
  expect(buried).not.toBe(oldest);
  await churnUntil(store, () => !segmentsIn(dir).includes(buried), "the segment with the deletion is gone");
  await store.close();
  expect(segmentsIn(dir)).toContain(oldest);
  nowMs -= 100;
  const { store: again } = await openStore(dir, { ...small, now });
  expect(await again.get("dead")).toBeUndefined();
  expect(await again.get("forever-4")).toBeDefined();
  expect(errors).toEqual([]);
});

test("without fsync, what compaction moved is flushed before its original is deleted", async () => {
  const dir = tempDir();
  const { files, operations } = recordedFiles();
  const { store } = await openStore(dir, { ...small, files, fsync: false });
  await store.create(record("kept", { result: bigResult(1_000) }));
  const first = segmentsIn(dir)[0] ?? "";
  await churnUntil(store, () => !segmentsIn(dir).includes(first), "the first segment is gone");
  const deleted = operations.findIndex(({ name, path }) => name === "unlink" && path.endsWith(first));
  const before = operations.slice(0, deleted).filter(({ path }) => isSegment(path) || path === dir);
  expect(before.map(({ name }) => name)).toContain("file.flush");
});

test("damage outlives the segment it was in: the task stays refused until it expires, then it can be born anew", async () => {
  const dir = tempDir();
  let nowMs = 1_000_000;
  const now = (): number => nowMs;
  const { store } = await openStore(dir, { ...small, now });
  await store.create(record("hurt", { ttlMs: 60_000 }));
  await store.create(record("neighbour"));
  await churn(store, 5);
  await store.close();
  const [name = ""] = segmentsIn(dir);
  const bytes = readFileSync(join(dir, name));
  bytes[800] = (bytes[800] ?? 0) ^ 1;
  writeFileSync(join(dir, name), bytes);

  const { store: second, errors } = await openStore(dir, { ...small, now });
  expect(await codeOf(second.get("hurt"))).toBe("record_corrupt");
  await churnUntil(second, () => !segmentsIn(dir).includes(name), "the damaged segment is gone");
  expect(await codeOf(second.get("hurt"))).toBe("record_corrupt");
  await second.close();
  expect(errors).toHaveLength(1);

  const { store: third, errors: later } = await openStore(dir, { ...small, now });
  expect(await codeOf(third.get("hurt"))).toBe("record_corrupt");
  expect(later).toHaveLength(1);
  expect(await third.get("neighbour")).toEqual(record("neighbour"));
  nowMs += 60_000;
  expect(await third.get("hurt")).toBeUndefined();
  await third.create(record("hurt", { version: 9 }));
  await third.close();
  const { store: fourth, errors: last } = await openStore(dir, { ...small, now });
  expect(await fourth.get("hurt")).toEqual(record("hurt", { version: 9 }));
  expect(last).toEqual([]);
});

for (const after of ["kill", "power cut"] as const) {
  test(
    `a ${after} at any step of a load with compaction leaves every acknowledged state (P41)`,
    { timeout: 120_000 },
    async () => {
      const root = quickTempDir();
      const { files, operations } = recordedFiles();
      const tiny = { segmentBytes: 4 * 1024, compactionFloorBytes: 4 * 1024, reserveBytes: 64 * 1024 };
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
