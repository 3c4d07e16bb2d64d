import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { churn, churnUntil, segmentsIn, small } from "./support/churn.ts";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { flip, frameOf } from "./support/frames-in.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import { errno, isSegment, wrappedFiles } from "./support/wrapped-files.ts";

/** A closed log whose first frame is damaged; with its id, when `at` says so. */
async function damagedLog(dir: string, now: () => number, at: number): Promise<string> {
  const { store } = await openStore(dir, { ...small, now });
  await store.create(record("victim", { ttlMs: 60_000 }));
  await churn(store, 5);
  await store.close();
  const [name = ""] = segmentsIn(dir);
  flip(dir, name, (await frameOf(dir, name, "victim", 1)).offset + at);
  return name;
}

/** The first letter of the id, behind the header and its length. */
const ID_AT = 84;

test("a segment with damage that only a hash names stays until the life of that task ends, and then goes", async () => {
  const dir = tempDir();
  let nowMs = 1_000_000;
  const now = (): number => nowMs;
  const name = await damagedLog(dir, now, ID_AT);
  const { store, errors } = await openStore(dir, { ...small, now });
  expect(await codeOf(store.get("victim"))).toBe("record_corrupt");
  await churnUntil(store, () => store.stats().lastCompaction !== null, "compaction has deleted a file");
  expect(segmentsIn(dir)).toContain(name);
  expect(await codeOf(store.get("victim"))).toBe("record_corrupt");
  nowMs += 60_000;
  expect(await store.get("victim")).toBeUndefined();
  await churnUntil(store, () => !segmentsIn(dir).includes(name), "the damaged segment is gone");
  await store.close();
  expect(errors).toHaveLength(1);
  nowMs -= 60_000;
  const { store: again, errors: later } = await openStore(dir, { ...small, now });
  expect(await again.get("victim")).toBeUndefined();
  expect(later).toEqual([]);
});

test("a create() of a task that only a hash names survives the compaction that runs beside it", async () => {
  const dir = tempDir();
  let nowMs = 1_000_000;
  const now = (): number => nowMs;
  const name = await damagedLog(dir, now, ID_AT);
  let create: (() => Promise<void>) | undefined;
  let created: Promise<void> | undefined;
  const killed = join(tempDir(), "killed");
  const files = wrappedFiles(async (operation, run) => {
    const isDeletion = operation.name === "unlink" && operation.path.endsWith(name);
    // In the middle of compaction, at the latest when the damage is about to leave the disk.
    if (isDeletion || operation.path.includes("quarantine")) await (created ??= create?.());
    const outcome = await run();
    if (isDeletion) copyWithoutLocks(dir, killed);
    return outcome;
  });
  const { store } = await openStore(dir, { ...small, now, files });
  nowMs += 60_000;
  const reborn = record("victim", { scope: "reborn" });
  create = () => store.create(reborn);
  await churnUntil(store, () => !segmentsIn(dir).includes(name), "the damaged segment is gone");
  await store.close();
  for (const left of [killed, dir]) {
    const { store: again } = await openStore(left, { ...small, now });
    expect(await again.get("victim")).toEqual(reborn);
    await again.close();
  }
});

test("bytes that could not be kept aside in full are kept before compaction deletes them", async () => {
  const dir = tempDir();
  const name = await damagedLog(dir, () => 1_000_000, ID_AT + 60);
  let isFull = true;
  const files = wrappedFiles((operation, run) =>
    isFull && operation.name === "file.write" && operation.path.includes("quarantine")
      ? Promise.reject(errno("ENOSPC"))
      : run(),
  );
  const { store, errors } = await openStore(dir, { ...small, files, now: () => 1_000_000 });
  expect(errors).toHaveLength(2);
  const kept = (): string[] => readdirSync(join(dir, "quarantine"));
  expect(kept()).toEqual([]);
  isFull = false;
  await churnUntil(store, () => !segmentsIn(dir).includes(name), "the damaged segment is gone");
  expect(kept()).toHaveLength(1);
  const [file = ""] = kept();
  const bytes = Number(/-(\d+)\.bytes$/.exec(file)?.[1]);
  expect(statSync(join(dir, "quarantine", file)).size).toBe(bytes);
  expect(bytes).toBeGreaterThan(100);
});

test("a file that cannot be read, and a directory flush that fails once, hold up nothing but themselves", async () => {
  for (const fault of ["read", "flush"] as const) {
    const dir = tempDir();
    let broken = "";
    let hasUnlinked = false;
    let hasFailed = false;
    const files = wrappedFiles(async ({ name, path }, run) => {
      if (fault === "read" && name === "file.read" && broken !== "" && path.endsWith(broken))
        throw errno("EIO");
      if (fault === "flush" && name === "flushDirectory" && hasUnlinked && !hasFailed) {
        hasFailed = true;
        throw errno("EIO");
      }
      if (name === "unlink" && isSegment(path)) hasUnlinked = true;
      return run();
    });
    const { store, errors } = await openStore(dir, { ...small, files });
    await store.create(record("kept"));
    [broken = ""] = segmentsIn(dir);
    await churnUntil(store, () => errors.length > 0, "the failure is reported");
    await churn(store, 300);
    // A file is gone from the disk before the store has forgotten it.
    const isCompact = (): boolean =>
      store.stats().segments <= 5 && segmentsIn(dir).length === store.stats().segments;
    await churnUntil(store, isCompact, "the other files were compacted, and are gone");
    expect(segmentsIn(dir).includes(broken)).toBe(fault === "read");
  }
});
