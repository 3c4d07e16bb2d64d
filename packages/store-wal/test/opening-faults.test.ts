import { join } from "node:path";
import { expect, test } from "vitest";
import { segmentsIn, small } from "./support/churn.ts";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { flip, frameOf, tear } from "./support/frames-in.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { recordedFiles, SimulatedDisk } from "./support/simulated-disk.ts";
import { tempDir } from "./support/temp-dir.ts";
import { errno, isSegment, wrappedFiles } from "./support/wrapped-files.ts";

/** So long that a whole sector lies in its frame, and nothing of it apart. */
const long = { statusMessage: "x".repeat(500), scope: "y".repeat(500), idempotencyKey: "z".repeat(480) };

/** A log whose owner was killed while it wrote `A` and `T`, which are torn, and `U` behind them, which is whole. */
async function tornLog(options: { readonly updates: number }): Promise<{ dir: string; name: string }> {
  const dir = tempDir();
  const { store } = await openStore(dir);
  for (let version = 1; version <= options.updates; version += 1) {
    if (version === 1) await store.create(record("busy"));
    await store.update("busy", { progress: { done: version } }, version);
  }
  await store.create(record("A"));
  await store.create(record("T", { result: bigResult(2_000) }));
  await store.update("T", { progress: { done: 1 } }, 1);
  await Promise.all([
    store.update("A", long, 1),
    store.update("T", long, 2),
    store.create(record("U", long)),
  ]);
  const killed = join(tempDir(), "killed");
  copyWithoutLocks(dir, killed);
  await store.close();
  const [name = ""] = segmentsIn(killed);
  tear(killed, name, await frameOf(killed, name, "A", 2));
  tear(killed, name, await frameOf(killed, name, "T", 3));
  return { dir: killed, name };
}

test("a torn write of a task with a damaged large field keeps nobody from opening the log", async () => {
  const { dir, name } = await tornLog({ updates: 0 });
  const healthy = join(tempDir(), "healthy");
  copyWithoutLocks(dir, healthy);
  const { store: whole } = await openStore(healthy);
  expect((await whole.get("T"))?.version).toBe(2);
  await whole.close();

  flip(dir, name, (await frameOf(dir, name, "T", 1)).offset + 1_500);
  for (let round = 0; round < 2; round += 1) {
    const { store, errors } = await openStore(dir);
    expect(await codeOf(store.get("T"))).toBe("record_corrupt");
    expect(await store.get("A")).toEqual(record("A"));
    expect(errors.map(String)).toEqual([expect.stringContaining("Task T is damaged")]);
    await store.close();
  }
});

test("an opening that fails half way leaves nothing running in a directory that is no longer its own", async () => {
  const { dir } = await tornLog({ updates: 300 });
  let flushes = 0;
  let reads = 0;
  let hasRejected = false;
  const late: string[] = [];
  const files = wrappedFiles(async ({ name, path }, run) => {
    if (hasRejected) late.push(`${name} ${path}`);
    if (name === "file.flush" && isSegment(path)) flushes += 1;
    // The log has been read and flushed: one of the torn writes is settled, the other cannot be.
    if (name === "file.read" && isSegment(path) && flushes > 0) {
      reads += 1;
      if (reads > 1) throw errno("EIO");
    }
    return run();
  });
  expect(await codeOf(openStore(dir, { ...small, files }))).toBe("store_unavailable");
  hasRejected = true;
  const { store } = await openStore(dir, { compactionFloorBytes: 1e9 });
  expect(await store.get("A")).toEqual(record("A"));
  expect((await store.get("T"))?.version).toBe(2);
  for (let index = 0; index < 20; index += 1) await store.create(record(`later-${index}`));
  await store.close();
  expect(late).toEqual([]);
});

for (const after of ["kill", "power cut"] as const) {
  test(`a ${after} at any step of an opening that settles torn writes leaves them their previous version`, async () => {
    const { dir } = await tornLog({ updates: 0 });
    const disk = SimulatedDisk.of(dir);
    const { files, operations } = recordedFiles();
    const { store } = await openStore(dir, { files });
    const openedAt = operations.length;
    const settling = operations.filter(({ name, path }) => name === "file.write" && isSegment(path));
    expect(settling.length, "a header, then what stands for the torn writes").toBeGreaterThan(1);
    await store.close();
    const left = join(tempDir(), "left");
    for (const [step, operation] of operations.slice(0, openedAt).entries()) {
      disk.apply(operation);
      disk.materialize(left, after);
      for (let opening = 1; opening <= 2; opening += 1) {
        const { store: again, errors } = await openStore(left);
        const context = `opening ${opening} after step ${step}, ${operation.name} ${operation.path}`;
        expect((await again.get("A"))?.version, context).toBe(1);
        expect((await again.get("T"))?.version, context).toBe(2);
        expect(await again.get("U"), context).toEqual(record("U", long));
        await again.close();
        expect(errors, context).toEqual([]);
      }
    }
  });
}

test("what a killed owner left is no torn write any more when a later owner has written behind it", async () => {
  const { dir, name } = await tornLog({ updates: 0 });
  const { store: second } = await openStore(dir);
  expect(await second.get("U")).toEqual(record("U", long));
  const killed = join(tempDir(), "killed");
  const torn = join(tempDir(), "torn");
  for (const left of [killed, torn]) {
    if (left === torn) await second.create(record("V"));
    copyWithoutLocks(dir, left);
    tear(left, name, await frameOf(left, name, "U", 1));
  }
  // Nothing tells it from a write that never ended, until the opening has been seen to end.
  const { store: third, errors } = await openStore(killed);
  expect(await third.get("U")).toBeUndefined();
  expect(errors).toEqual([]);
  const { store: fourth, errors: reported } = await openStore(torn);
  expect(await codeOf(fourth.get("U"))).toBe("record_corrupt");
  expect(reported).toHaveLength(1);
});
