import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TaskRecord } from "@longjobs/core";
import { expect, test } from "vitest";
import { bytesIn, churn, churnUntil, segmentsIn, small } from "./support/churn.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { recordedFiles } from "./support/simulated-disk.ts";
import { tempDir } from "./support/temp-dir.ts";
import { waitUntil } from "./support/wait-until.ts";
import { isSegment, wrappedFiles } from "./support/wrapped-files.ts";

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

test("everything that is needed of a file of several MiB is moved, in whatever order it was written", async () => {
  const dir = tempDir();
  const { store, errors } = await openStore(dir, { compactionFloorBytes: 1024 * 1024 });
  const ids = Array.from({ length: 40 }, (_, index) => `t${index}`);
  for (const taskId of ids) await store.create(record(taskId));
  // 17 has no divisor in common with 40: each task once, and far from the order of their births.
  const scattered = ids.map((_, index) => `t${(index * 17) % 40}`);
  for (const taskId of scattered) await store.update(taskId, { result: bigResult(100_000) }, 1);
  const [first] = segmentsIn(dir);
  for (const taskId of scattered.slice(0, 25)) await store.update(taskId, { result: bigResult(10) }, 2);
  await waitUntil(() => !segmentsIn(dir).includes(first ?? ""), "compaction has deleted the first file");
  await store.close();
  const { store: again } = await openStore(dir);
  for (const [index, taskId] of scattered.entries()) {
    const result = bigResult(index < 25 ? 10 : 100_000);
    expect(await again.get(taskId)).toMatchObject({ version: index < 25 ? 3 : 2, result });
  }
  expect(errors).toEqual([]);
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

test("tasks that are written while compaction moves them keep every write and every large field", async () => {
  const dir = tempDir();
  const { store, errors } = await openStore(dir, small);
  await Promise.all(
    Array.from({ length: 8 }, async (_, writer) => {
      const taskId = `t${writer}`;
      let result = bigResult(600 + writer);
      await store.create(record(taskId, { result }));
      for (let version = 1; version <= 400; version += 1) {
        const changes = version % (20 + writer) === 0;
        if (changes) result = bigResult(600 + version);
        await store.update(taskId, { progress: { done: version }, ...(changes ? { result } : {}) }, version);
        if (version % 50 === 0) expect((await store.get(taskId))?.result).toEqual(result);
      }
    }),
  );
  const before = await Promise.all(Array.from({ length: 8 }, (_, writer) => store.get(`t${writer}`)));
  await store.close();
  expect(segmentsIn(dir).some((name) => name.endsWith("-0000000001.log"))).toBe(false);
  const { store: again } = await openStore(dir, { ...small, cacheBytes: 0 });
  for (const known of before) expect(await again.get(known?.taskId ?? "")).toEqual(known);
  expect(errors).toEqual([]);
});

test("a task that is written between the scan of its segment and its move keeps both its states apart", async () => {
  const dir = tempDir();
  let onScan: (() => void) | undefined;
  const files = wrappedFiles(async ({ name, path }, run) => {
    const outcome = await run();
    // All tasks are in memory: only compaction reads segments.
    if (name === "file.read" && isSegment(path)) onScan?.();
    return outcome;
  });
  const { store, errors } = await openStore(dir, { ...small, files });
  await store.create(record("idle", { result: bigResult(900) }));
  const first = segmentsIn(dir)[0] ?? "";
  let racing: Promise<number> | undefined;
  onScan = () => {
    racing ??= store.update("idle", { scope: "written meanwhile" }, 1);
  };
  await churnUntil(store, () => !segmentsIn(dir).includes(first), "the first segment is gone");
  expect(await racing).toBe(2);
  const now = record("idle", { version: 2, result: bigResult(900), scope: "written meanwhile" });
  expect(await store.get("idle")).toEqual(now);
  await store.close();
  const { store: again } = await openStore(dir, { ...small, cacheBytes: 0 });
  expect(await again.get("idle")).toEqual(now);
  expect(errors).toEqual([]);
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
  bytes[4_512] = (bytes[4_512] ?? 0) ^ 1;
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
