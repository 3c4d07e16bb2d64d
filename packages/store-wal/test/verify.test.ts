import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { DamageReport } from "../src/damage-report.ts";
import { churn, churnUntil, segmentsIn, small } from "./support/churn.ts";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { means, withBytes, writeSmallLog, type SmallLog } from "./support/small-log.ts";
import { quickTempDir, tempDir } from "./support/temp-dir.ts";
import { photograph, runWal, walJson } from "./support/wal-command.ts";

interface Verified {
  readonly healthy: boolean;
  readonly counts: { readonly tasks: number; readonly healthyTasks: number; readonly damagedTasks: number };
  readonly damage: readonly DamageReport[];
}

const verify = (dir: string): Promise<Verified & { code: number }> => walJson<Verified>(["verify", dir]);

function flip(bytes: Buffer, offset: number): Buffer {
  const flipped = Buffer.from(bytes);
  flipped[offset] = (flipped[offset] ?? 0) ^ (1 << (offset % 8));
  return flipped;
}

/** One flipped byte in the body of the newest frame of a task, in a log of its own. */
async function withDamaged(
  log: SmallLog,
  taskId: string,
  run: (dir: string) => Promise<void>,
): Promise<void> {
  const frame = log.frames.findLast((one) => one.taskId === taskId);
  await withBytes(log, flip(log.bytes, (frame?.end ?? 0) - 40), run);
}

for (const ending of ["closed", "killed"] as const) {
  test(
    `a flipped byte of a ${ending} log is found, wherever it is, and the tasks said to be refused are those that are`,
    { timeout: 180_000 },
    async () => {
      const log = await writeSmallLog(quickTempDir(), ending);
      for (let offset = 0; offset < log.bytes.length; offset += means(offset) ? 5 : 300) {
        await withBytes(log, flip(log.bytes, offset), async (dir) => {
          const context = `byte ${offset} flipped`;
          const before = photograph(dir);
          const found = await verify(dir);
          expect(photograph(dir), context).toEqual(before);
          expect(found.code, context).toBe(means(offset) ? 1 : 0);
          expect(found.healthy, context).toBe(!means(offset));
          const refused = found.damage.filter(({ kind }) => kind === "task" || kind === "field");
          expect(refused, context).toHaveLength(found.counts.damagedTasks);

          const { store } = await openStore(dir);
          for (const taskId of ["one", "big", "two", "last"]) {
            const isRefused = (await codeOf(store.get(taskId))) === "record_corrupt";
            const isSaid = refused.some((one) => one.taskId === taskId || one.taskId === null);
            if (isRefused) expect(isSaid, `${taskId} with ${context}`).toBe(true);
            else
              expect(
                refused.map((one) => one.taskId),
                context,
              ).not.toContain(taskId);
          }
          await store.close();
        });
      }
    },
  );
}

test("a damaged task is said with what it was, and after an opening with where its bytes are kept", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  await withDamaged(log, "two", async (dir) => {
    const frame = log.frames.findLast(({ taskId }) => taskId === "two");
    const [damage, ...others] = (await verify(dir)).damage;
    expect(others).toEqual([]);
    expect(damage).toEqual({
      kind: "task",
      taskId: "two",
      idHash: expect.stringMatching(/^[0-9a-f]+:[0-9a-f]+$/) as string,
      knownVersion: 1,
      sequence: expect.any(Number) as number,
      bornAt: expect.stringMatching(/Z$/) as string,
      expiresAt: null,
      file: log.name,
      offset: frame?.start,
      bytes: (frame?.end ?? 0) - (frame?.start ?? 0),
      quarantine: null,
    });
    expect((await runWal(["verify", dir])).printed).toContain(
      [
        "damaged: two",
        "  was         the newest write of the task: the task is refused",
        `  known       version 1 is the last that is known, sequence ${damage?.sequence}, born ${damage?.bornAt}`,
        `  place       ${log.name} at ${damage?.offset}, ${damage?.bytes} bytes`,
        "  quarantine  no copy yet: opening the log with WalTaskStore makes one",
      ].join("\n"),
    );

    const { store } = await openStore(dir);
    await store.close();
    const kept = (await verify(dir)).damage[0]?.quarantine ?? "";
    const bytes = readFileSync(join(dir, log.name));
    expect(readFileSync(kept)).toEqual(bytes.subarray(frame?.start, frame?.end));
    const { code, printed } = await runWal(["verify", dir]);
    expect(printed).toContain(`  quarantine  ${kept}\n`);
    expect(printed).toMatch(/^4 tasks, .+: 1 damaged place, 1 task refused$/m);
    expect(code).toBe(1);
  });
});

test("a large field in damaged bytes, and an earlier write that nobody misses, are told apart", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  const [first, withField] = log.frames;
  await withBytes(log, flip(log.bytes, (withField?.end ?? 0) - 100), async (dir) => {
    expect((await verify(dir)).damage).toMatchObject([{ kind: "field", taskId: "big", knownVersion: 2 }]);
  });
  await withBytes(log, flip(log.bytes, (first?.end ?? 0) - 40), async (dir) => {
    const found = await verify(dir);
    expect(found).toMatchObject({ code: 1, counts: { healthyTasks: 4, damagedTasks: 0 } });
    expect(found.damage).toMatchObject([{ kind: "superseded", taskId: "one", offset: first?.start }]);
  });
});

test("headers, missing ends and whole files are told by their kind", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  await withBytes(log, flip(log.bytes, 20), async (dir) => {
    expect((await verify(dir)).damage).toMatchObject([{ kind: "header", taskId: null, idHash: null }]);
  });
  await withBytes(log, flip(flip(log.bytes, 20), 4_242), async (dir) => {
    expect((await verify(dir)).damage).toMatchObject([{ kind: "file", bytes: log.bytes.length }]);
  });
  await withBytes(log, log.bytes, async (dir) => {
    truncateSync(join(dir, log.name), log.frames.at(-1)?.start);
    expect((await verify(dir)).damage).toMatchObject([{ kind: "missing" }]);
    expect((await runWal(["verify", dir])).printed).toContain("  quarantine  nothing to keep");
  });
});

test("a task whose large field was in a file that is gone is refused", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir, { segmentBytes: 4_096 });
  await store.create(record("big", { result: bigResult(3_000) }));
  await store.create(record("other", { result: bigResult(3_000) }));
  await store.update("big", { scope: "x" }, 1);
  await store.close();
  rmSync(join(dir, segmentsIn(dir)[0] ?? ""));
  expect((await verify(dir)).damage).toMatchObject([{ kind: "field", taskId: "big", knownVersion: 2 }]);
});

test("a marker that compaction left says so, and finds the bytes that are kept", async () => {
  const dir = tempDir();
  const options = { ...small, cacheBytes: 0 };
  const { store: first } = await openStore(dir, options);
  await first.create(record("hurt", { scope: "here" }));
  // A file that has nothing to gain would stay.
  await churn(first, 5);
  await first.close();
  const [name = ""] = segmentsIn(dir);
  const bytes = readFileSync(join(dir, name));
  writeFileSync(join(dir, name), flip(bytes, bytes.indexOf('"here"') + 2));
  const { store } = await openStore(dir, options);
  await churnUntil(store, () => !segmentsIn(dir).includes(name), "the damaged file to be compacted");
  await store.close();
  const found = await verify(dir);
  expect(found.damage).toMatchObject([{ kind: "marker", taskId: "hurt" }]);
  expect(readFileSync(found.damage[0]?.quarantine ?? "").includes('here"')).toBe(false);
  expect(found.damage[0]?.quarantine).toContain(name);
  expect(found.code).toBe(1);
});

test("a write cut short by a kill is no damage", async () => {
  const log = await writeSmallLog(tempDir(), "killed");
  await withBytes(log, log.bytes.subarray(0, -20), async (dir) => {
    expect(await verify(dir)).toMatchObject({ code: 0, healthy: true, counts: { unendedWrites: 1 } });
    expect((await runWal(["verify", dir])).printed).toContain("1 write cut short by a crash");
  });
});

test("a write cut short in front of whole ones is no damage, before an opening and after it", async () => {
  const root = tempDir();
  const { store } = await openStore(join(root, "written"));
  await store.create(record("before"));
  // Both share a flush that never ended: the disk wrote the second before the first.
  const hole = record("hole", { result: bigResult(4_000, "h") });
  await Promise.all([store.create(hole), store.create(record("whole"))]);
  const dir = join(root, "log");
  copyWithoutLocks(join(root, "written"), dir);
  const [name = ""] = segmentsIn(dir);
  const bytes = readFileSync(join(dir, name));
  const at = Math.ceil(bytes.indexOf("hhhh") / 512) * 512;
  writeFileSync(join(dir, name), bytes.fill(0, at, at + 1_024));
  expect(await verify(dir)).toMatchObject({ code: 0, damage: [], counts: { tasks: 2, unendedWrites: 1 } });
  const { store: healed, errors } = await openStore(dir);
  await healed.close();
  expect(errors).toEqual([]);
  expect(await verify(dir)).toMatchObject({ code: 0, damage: [], counts: { tasks: 2, unendedWrites: 0 } });
});

test("verify says nothing about payloads, damaged or not", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  await withDamaged(log, "one", async (dir) => {
    for (const more of [[], ["--json"]]) {
      const { printed } = await runWal(["verify", dir, ...more]);
      expect(printed).not.toMatch(/content|second|xxx/);
    }
  });
});
