import { expect, test } from "vitest";
import { churnUntil, segmentsIn, small } from "./support/churn.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import { errno, isSegment, wrappedFiles } from "./support/wrapped-files.ts";

test("a store that has written nothing says so", async () => {
  const { store } = await openStore(tempDir());
  expect(store.stats()).toEqual({
    tasks: 0,
    liveBytes: 0,
    garbageBytes: 0,
    segments: 0,
    flushes: 0,
    records: 0,
    recordsPerFlush: 0,
    lastCompaction: null,
  });
});

test("writes that share a flush are counted together, and what they supersede is garbage", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir);
  await Promise.all(["a", "b", "c", "d"].map((taskId) => store.create(record(taskId))));
  const before = store.stats();
  expect(before).toMatchObject({ tasks: 4, garbageBytes: 0, segments: 1, flushes: 1, records: 4 });
  expect(before.recordsPerFlush).toBe(4);
  await store.update("a", { scope: "x" }, 1);
  const after = store.stats();
  expect(after).toMatchObject({ tasks: 4, flushes: 2, records: 5, recordsPerFlush: 2.5 });
  expect(after.garbageBytes).toBe(before.liveBytes / 4);
  await store.close();

  const { store: again } = await openStore(dir);
  const { liveBytes, garbageBytes } = after;
  expect(again.stats()).toMatchObject({ tasks: 4, liveBytes, garbageBytes, flushes: 0, records: 0 });
});

test("stats() has what a monitor asks for", async () => {
  const { store } = await openStore(tempDir());
  await Promise.all(["a", "b"].map((taskId) => store.create(record(taskId))));
  // #region stats
  const { tasks, liveBytes, garbageBytes, segments } = store.stats(); // the log at this moment
  const { flushes, records, recordsPerFlush, lastCompaction } = store.stats(); // since it was opened
  // #endregion
  expect([tasks, garbageBytes, segments]).toEqual([2, 0, 1]);
  expect(liveBytes).toBeGreaterThan(500);
  expect([flushes, records, recordsPerFlush, lastCompaction]).toEqual([1, 2, 2, null]);
});

test("a write that failed is not counted", async () => {
  let isBroken = false;
  const files = wrappedFiles(async ({ name, path }, run) => {
    if (isBroken && name === "file.flush" && isSegment(path)) throw errno("EIO");
    return run();
  });
  const { store } = await openStore(tempDir(), { files });
  await store.create(record("good"));
  isBroken = true;
  expect(await codeOf(store.create(record("bad")))).toBe("store_unavailable");
  expect(store.stats()).toMatchObject({ tasks: 1, flushes: 1, records: 1 });
});

test("the last compaction says what it gave back", async () => {
  const dir = tempDir();
  const now = (): number => Date.parse("2026-03-01T12:00:00.000Z");
  const { store } = await openStore(dir, { ...small, now });
  await churnUntil(store, () => store.stats().lastCompaction !== null, "a compaction");
  const { lastCompaction } = store.stats();
  expect(lastCompaction?.endedAt).toBe("2026-03-01T12:00:00.000Z");
  expect(lastCompaction?.durationMs).toBeGreaterThanOrEqual(0);
  expect(lastCompaction?.deletedSegments).toBeGreaterThan(0);
  expect(lastCompaction?.freedBytes).toBeGreaterThan(1_000);
  expect(store.stats().segments).toBe(segmentsIn(dir).length);
});

test("a closed store has no stats", async () => {
  const { store } = await openStore(tempDir());
  await store.close();
  expect(() => store.stats()).toThrow(expect.objectContaining({ code: "store_closed" }));
});
