import { copyFileSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { decodeLock } from "../src/lock-file.ts";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import { waitUntil } from "./support/wait-until.ts";
import { errno, isSegment, wrappedFiles } from "./support/wrapped-files.ts";

const small = { segmentBytes: 8 * 1024, compactionFloorBytes: 8 * 1024 };
const segmentsIn = (dir: string): string[] => readdirSync(dir).filter(isSegment).toSorted();

test("a rejected write stays absent after compaction has deleted the file that said so", async () => {
  const dir = tempDir();
  let isBroken = false;
  const files = wrappedFiles(({ name, path }, run) => {
    if (!isBroken || name !== "file.flush" || !isSegment(path)) return run();
    isBroken = false;
    return Promise.reject(errno("EIO"));
  });
  const { store } = await openStore(dir, { ...small, files });
  // The segment with the rejected write stays nearly all live; the one after it becomes all garbage.
  for (const taskId of ["a", "b", "c"]) await store.create(record(taskId, { result: bigResult(2_000) }));
  isBroken = true;
  expect(await codeOf(store.create(record("rejected")))).toBe("store_unavailable");
  await store.create(record("churn"));
  const [failed = "", successor = ""] = segmentsIn(dir);
  for (let version = 1; version <= 200; version += 1)
    await store.update("churn", { progress: { done: version } }, version);
  await store.close();
  const left = segmentsIn(dir);
  expect(left.length).toBeLessThan(12);
  // Either both are there, or the failed one went first.
  if (left.includes(failed)) expect(left).toContain(successor);
  const { store: again } = await openStore(dir, small);
  expect(await again.get("rejected")).toBeUndefined();
  for (const taskId of ["a", "b", "c"])
    expect(await again.get(taskId)).toEqual(record(taskId, { result: bigResult(2_000) }));
});

test("a reader keeps the file it reads until it has read, whatever compaction wants", async () => {
  const dir = tempDir();
  let release: (() => void) | undefined;
  let held = "";
  let holds = false;
  const files = wrappedFiles(async ({ name, path }, run) => {
    if (holds && name === "file.read" && isSegment(path)) {
      holds = false;
      held = path;
      await new Promise<void>((resolve) => (release = resolve));
    }
    return run();
  });
  const { store, errors } = await openStore(dir, { ...small, files, cacheBytes: 0, fsync: false });
  const given = record("read", { result: bigResult(1_000) });
  await store.create(given);
  await store.create(record("churn"));
  await store.update("churn", { progress: { done: 0 } }, 1);
  holds = true;
  const reading = store.get("read");
  await waitUntil(() => held !== "", "the read has begun");
  let version = 2;
  const churn = async (): Promise<void> => {
    for (let round = 0; round < 40; round += 1)
      version = await store.update("churn", { progress: { done: version } }, version);
  };
  for (let round = 0; round < 20; round += 1) await churn();
  expect(existsSync(held)).toBe(true);
  release?.();
  expect(await reading).toEqual(given);
  for (let round = 0; round < 100 && existsSync(held); round += 1) await churn();
  await waitUntil(() => !existsSync(held), "the file is gone when nobody reads it");
  expect(await store.get("read")).toEqual(given);
  expect(errors).toEqual([]);
});

test("files that an owner began after it had lost the directory are not part of the log", async () => {
  const lost = tempDir();
  const { store: old } = await openStore(lost, small);
  await old.create(record("a"));
  const dir = join(tempDir(), "taken");
  copyWithoutLocks(lost, dir);
  const { store } = await openStore(dir, small);
  await store.update("a", { scope: "theirs" }, 1);
  await store.close();
  // Meanwhile the old owner goes on, in a new file.
  for (let index = 0; index < 30; index += 1)
    await old.create(record(`late-${index}`, { scope: "x".repeat(400) }));
  const began = segmentsIn(lost).filter((name) => !segmentsIn(dir).includes(name));
  expect(began.length).toBeGreaterThan(0);
  for (const name of began) copyFileSync(join(lost, name), join(dir, name));
  const { store: again, errors } = await openStore(dir, small);
  expect((await again.get("a"))?.scope).toBe("theirs");
  for (let index = 0; index < 30; index += 1) expect(await again.get(`late-${index}`)).toBeUndefined();
  expect(errors).toEqual([]);
});

test("the holder counts in its lock file every two seconds, and stops when it closes", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const dir = tempDir();
    const { store } = await openStore(dir);
    const content = (): ReturnType<typeof decodeLock> => decodeLock(readFileSync(join(dir, "lock.1")));
    expect(content()).toMatchObject({ state: "held", counter: 0 });
    vi.advanceTimersByTime(1_999);
    expect(content()?.counter).toBe(0);
    vi.advanceTimersByTime(1);
    await waitUntil(() => content()?.counter === 1, "the first beat");
    await waitUntil(() => {
      vi.advanceTimersByTime(2_000);
      return (content()?.counter ?? 0) > 3;
    }, "more beats");
    await store.close();
    const end = content();
    expect(end?.state).toBe("closed");
    vi.advanceTimersByTime(10_000);
    expect(content()).toEqual(end);
  } finally {
    vi.useRealTimers();
  }
});

test("a log of many files is read with a bounded number of descriptors", async () => {
  const dir = tempDir();
  let open = 0;
  let most = 0;
  const files = wrappedFiles(async ({ name }, run) => {
    const outcome = await run();
    if (name === "open") most = Math.max(most, (open += 1));
    if (name === "file.close") open -= 1;
    return outcome;
  });
  const { store } = await openStore(dir, { segmentBytes: 4_096, files, cacheBytes: 0 });
  for (let index = 0; index < 150; index += 1)
    await store.create(record(`t${index}`, { result: bigResult(3_500) }));
  for (let index = 0; index < 150; index += 1) expect(await store.get(`t${index}`)).toBeDefined();
  expect(segmentsIn(dir).length).toBeGreaterThan(140);
  expect(most).toBeLessThan(80);
  await store.close();
  expect(open).toBe(0);
});
