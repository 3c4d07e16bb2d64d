import { dirname } from "node:path";
import { expect, test } from "vitest";
import { openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import { waitUntil } from "./support/wait-until.ts";
import { isSegment, wrappedFiles, type FileOperation } from "./support/wrapped-files.ts";

function watchedFiles(): {
  files: ReturnType<typeof wrappedFiles>;
  done: FileOperation[];
  flushes: () => number;
} {
  const done: FileOperation[] = [];
  const files = wrappedFiles(async (operation, run) => {
    const outcome = await run();
    done.push(operation);
    return outcome;
  });
  const flushes = (): number =>
    done.filter(({ name, path }) => name === "file.flush" && isSegment(path)).length;
  return { files, done, flushes };
}

test("many parallel writers share one flush and all resolve (P42)", async () => {
  const { files, flushes } = watchedFiles();
  const { store } = await openStore(tempDir(), { files });
  await store.create(record("first"));
  const before = flushes();
  await Promise.all(Array.from({ length: 200 }, (_, index) => store.create(record(`t${index}`))));
  expect(flushes() - before).toBe(1);
  await Promise.all(Array.from({ length: 200 }, (_, index) => store.update(`t${index}`, { scope: "x" }, 1)));
  expect(flushes() - before).toBe(2);
});

test("writes that arrive while a flush runs share the next one", async () => {
  let release = (): void => {};
  let flushes = 0;
  let isHeld = false;
  const files = wrappedFiles(async ({ name, path }, run) => {
    if (name === "file.flush" && isSegment(path)) {
      flushes += 1;
      if (isHeld) {
        isHeld = false;
        await new Promise<void>((resolve) => (release = resolve));
      }
    }
    return run();
  });
  const { store } = await openStore(tempDir(), { files });
  await store.create(record("a"));
  isHeld = true;
  const before = flushes;
  let acknowledged = 0;
  const count = (): void => void (acknowledged += 1);
  const held = store.update("a", { scope: "1" }, 1).then(count);
  await waitUntil(() => flushes > before, "the flush has begun");
  const later = Array.from({ length: 50 }, (_, index) => store.create(record(`t${index}`)).then(count));
  // Nobody is told, and nobody sees anything, before the flush.
  await new Promise((resolve) => setImmediate(resolve));
  expect(acknowledged).toBe(0);
  expect(await store.get("a")).toEqual(record("a"));
  expect(await store.get("t0")).toBeUndefined();
  release();
  await Promise.all([held, ...later]);
  expect(flushes - before).toBe(2);
});

test("the first write is acknowledged after the flush of the new file, of its frame, and of the directory", async () => {
  const { files, done } = watchedFiles();
  const dir = tempDir();
  const { store } = await openStore(dir, { files });
  done.length = 0;
  await store.create(record("a"));
  const steps = done
    .filter(({ name }) => name !== "file.read")
    .map(({ name, path }) => `${name} ${path === dir ? "dir" : isSegment(path) ? "segment" : path}`);
  expect(steps).toEqual([
    "open segment",
    "file.write segment",
    "file.flush segment",
    "flushDirectory dir",
    "file.write segment",
    "file.flush segment",
  ]);
});

test("a directory that open() makes is flushed into its parent", async () => {
  const { files, done } = watchedFiles();
  const root = tempDir();
  await openStore(`${root}/one/two`, { files });
  const flushed = done.filter(({ name }) => name === "flushDirectory").map(({ path }) => path);
  expect(flushed).toContain(`${root}/one`);
  expect(flushed).toContain(dirname(`${root}/one`));
});

test("without fsync a write is acknowledged after the write, and nothing is flushed", async () => {
  const { files, flushes } = watchedFiles();
  const { store } = await openStore(tempDir(), { files, fsync: false });
  await store.create(record("a"));
  await store.update("a", { scope: "x" }, 1);
  expect(flushes()).toBe(0);
});

test("1,000 durable updates, one after the other, leave the event loop a turn each", async () => {
  const { store } = await openStore(tempDir());
  await store.create(record("a"));
  let turns = 0;
  let isDone = false;
  const turn = (): void => {
    turns += 1;
    if (!isDone) setImmediate(turn);
  };
  setImmediate(turn);
  for (let version = 1; version <= 1_000; version += 1)
    await store.update("a", { progress: { done: version } }, version);
  isDone = true;
  expect(turns).toBeGreaterThanOrEqual(1_000);
});
