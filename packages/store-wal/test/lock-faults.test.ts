import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { expect, onTestFinished, test, vi } from "vitest";
import { lockDirectory, realWorld } from "../src/lock-directory.ts";
import { decodeLock, LOCK_BYTES } from "../src/lock-file.ts";
import { nodeFiles } from "../src/node-file-layer.ts";
import { identifyProcess, probeProcess } from "../src/process-identity.ts";
import { segmentsIn } from "./support/churn.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import { waitUntil } from "./support/wait-until.ts";
import { errno, wrappedFiles, type FileOperation } from "./support/wrapped-files.ts";

for (const [title, fits, code] of [
  ["its lock cannot be opened", ({ name, flags }) => name === "open" && flags === "r+", "EMFILE"],
  ["the directory cannot be listed again", ({ name }) => name === "list", "EIO"],
  ["an earlier lock cannot be read", ({ name, path }) => name === "open" && path.endsWith("lock.1"), "EIO"],
] satisfies [string, (operation: FileOperation) => boolean, string][]) {
  test(`an opening that fails because ${title} holds nothing`, async () => {
    const dir = tempDir();
    const { store } = await openStore(dir);
    await store.create(record("a"));
    await store.close();
    let isLinked = false;
    const files = wrappedFiles(async (operation, run) => {
      if (isLinked && fits(operation)) throw errno(code);
      const outcome = await run();
      isLinked ||= operation.name === "link";
      return outcome;
    });
    expect(await codeOf(openStore(dir, { files }))).toBe("store_unavailable");
    const { store: again, errors } = await openStore(dir);
    expect(await again.get("a")).toEqual(record("a"));
    expect(errors).toEqual([]);
  });
}

test("a directory with a path too long for its lock file opens as often as any", async () => {
  const root = tempDir();
  for (const length of [600, 700, 800, 2_000]) {
    const names = Array.from({ length: Math.ceil(length / 100) }, () => "d".repeat(99));
    const dir = join(root, ...names);
    for (let version = 1; version <= 3; version += 1) {
      const { store, errors } = await openStore(dir);
      if (version === 1) await store.create(record("a"));
      else await store.update("a", { scope: String(version) }, version - 1);
      expect(await codeOf(openStore(dir))).toBe("store_locked");
      await store.close();
      expect(errors).toEqual([]);
    }
  }
});

test("a lock whose checksum is right and whose text is no JSON is one that nobody finished", () => {
  const block = Buffer.alloc(LOCK_BYTES, "x");
  const sum = crc32(block.subarray(0, LOCK_BYTES - 9))
    .toString(16)
    .padStart(8, "0");
  block.write(`${sum}\n`, LOCK_BYTES - 9);
  expect(decodeLock(block)).toBeUndefined();
});

test("an owner whose directory was removed and made anew by another learns it with its next sign of life", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const dir = tempDir();
  const { lock } = await lockDirectory(nodeFiles, dir, realWorld());
  const errors: unknown[] = [];
  let isLost = false;
  lock.startHeartbeat((error) => errors.push(error));
  lock.whenTakenOver(() => (isLost = true));
  rmSync(dir, { recursive: true });
  mkdirSync(dir);
  const { lock: other } = await lockDirectory(nodeFiles, dir, realWorld());
  expect(other.epoch).toBe(lock.epoch);
  vi.advanceTimersByTime(2_000);
  await waitUntil(() => isLost, "the owner has noticed");
  expect(errors).toEqual([]);
  await lock.close(undefined);
  await other.close(undefined);
});

test("a file with an epoch that no owner can have had changes nothing", async () => {
  for (const stray of ["segment-9999999999-0000000001.log", "lock.10000000000", "lock.536870912"]) {
    const dir = tempDir();
    writeFileSync(join(dir, stray), "");
    const { store } = await openStore(dir);
    await store.create(record("a"));
    await store.close();
    expect(readdirSync(dir)).toContain("lock.1");
    const { store: again } = await openStore(dir);
    expect(await again.get("a")).toEqual(record("a"));
  }
});

test("large fields are found after millions of openings", async () => {
  const dir = tempDir();
  const tiny = { segmentBytes: 4 * 1024, compactionFloorBytes: 1e9, cacheBytes: 0 };
  const { store: first } = await openStore(dir);
  await first.close();
  renameSync(join(dir, "lock.1"), join(dir, "lock.500000000"));
  const ids = Array.from({ length: 20 }, (_, index) => `t${index}`);
  const { store } = await openStore(dir, tiny);
  for (const taskId of ids) await store.create(record(taskId, { result: bigResult(600, taskId) }));
  await store.close();
  const { store: second } = await openStore(dir, tiny);
  for (const taskId of ids) await second.update(taskId, { progress: { done: 1 } }, 1);
  await second.close();
  const { store: third } = await openStore(dir, tiny);
  for (const taskId of ids) expect((await third.get(taskId))?.result).toEqual(bigResult(600, taskId));
  expect(segmentsIn(dir).length).toBeGreaterThan(4);
});

test("a holder that cannot be looked at for want of descriptors is not dead", () => {
  const self = identifyProcess();
  const stat = readFileSync(`/proc/${process.ppid}/stat`, "latin1");
  const startTime = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? "";
  const holder = { ...self, pid: process.ppid, startTime };
  expect(probeProcess(holder, self)).toBe("alive");
  const noDescriptors = (): string => {
    throw errno("EMFILE");
  };
  expect(probeProcess(holder, self, noDescriptors)).toBe("unknown");
});
