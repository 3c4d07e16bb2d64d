import { isLongJobsError } from "@longjobs/core";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { WalTaskStore } from "../src/index.ts";
import { FRAMES_START } from "../src/segment-header.ts";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { codeOf } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import {
  means,
  statesBefore,
  withBytes,
  writeSmallLog,
  type LoggedFrame,
  type SmallLog,
} from "./support/small-log.ts";
import { quickTempDir, tempDir } from "./support/temp-dir.ts";

async function openQuietly(dir: string): Promise<{ store: WalTaskStore; errors: unknown[] }> {
  const errors: unknown[] = [];
  const store = await WalTaskStore.open({ dir, reserveBytes: null, onError: (error) => errors.push(error) });
  return { store, errors };
}

/** The newest frame of each task and the frames whose large field it still refers to. */
function neededFrames({ frames }: SmallLog): LoggedFrame[] {
  const newest = new Map(frames.map((frame) => [frame.taskId, frame]));
  const withField = frames.find(({ taskId }) => taskId === "big");
  return withField === undefined ? [...newest.values()] : [...newest.values(), withField];
}

for (const ending of ["closed", "killed"] as const) {
  test(
    `any flipped byte of a ${ending} log hurts at most its own task, and that one is refused and reported`,
    { timeout: 180_000 },
    async () => {
      const log = await writeSmallLog(quickTempDir(), ending);
      const final = statesBefore(log, log.bytes.length);
      const needed = neededFrames(log);
      for (let offset = 0; offset < log.bytes.length; offset += means(offset) ? 1 : 100) {
        const bytes = Buffer.from(log.bytes);
        bytes[offset] = (bytes[offset] ?? 0) ^ (1 << (offset % 8));
        const hit = needed.find(({ start, end }) => offset >= start && offset < end);
        await withBytes(log, bytes, async (dir) => {
          const { store, errors } = await openQuietly(dir);
          for (const [taskId, state] of final) {
            const context = `${taskId} with byte ${offset} flipped`;
            if (taskId !== hit?.taskId) expect(await store.get(taskId), context).toEqual(state);
            else {
              expect(await codeOf(store.get(taskId)), context).toBe("record_corrupt");
              expect(await codeOf(store.update(taskId, { scope: "x" }, state.version)), context).toBe(
                "record_corrupt",
              );
              expect(await codeOf(store.create(state)), context).toBe("record_corrupt");
            }
          }
          const reported = errors.filter((error) => isLongJobsError(error, "record_corrupt"));
          if (hit !== undefined) {
            expect(reported, `reports with byte ${offset} flipped`).toHaveLength(1);
            // Where the id itself was hit, only its hash is left.
            expect(String(reported[0])).toMatch(
              /^LongJobsError: (Task (one|two|big|last)|A task with the id hash) /,
            );
          }
          await store.close();
        });
      }
    },
  );

  test(
    `a ${ending} log cut at any byte keeps what was acknowledged before the cut, and takes new writes (P36)`,
    { timeout: 180_000 },
    async () => {
      const log = await writeSmallLog(quickTempDir(), ending);
      for (let cut = 0; cut < log.bytes.length; cut += means(cut) ? 1 : 100) {
        const hurt = log.frames.find(({ start, end }) => cut > start && cut < end);
        const before = statesBefore(log, cut);
        await withBytes(log, log.bytes.subarray(0, cut), async (dir) => {
          const { store } = await openQuietly(dir);
          const check = async (one: WalTaskStore): Promise<void> => {
            for (const taskId of ["one", "big", "two", "last"]) {
              const context = `${taskId} after a cut at ${cut}`;
              const outcome = await one.get(taskId).catch((error: unknown) => error);
              // After a clean close a missing byte is damage; else the write never ended, and nobody was told.
              const isRefused = isLongJobsError(outcome, "record_corrupt");
              if (isRefused) expect([ending, taskId], context).toEqual(["closed", hurt?.taskId]);
              else expect(outcome, context).toEqual(before.get(taskId));
            }
          };
          await check(store);
          await store.create(record("new", { scope: "after the cut" }));
          await store.close();
          const { store: again } = await openQuietly(dir);
          await check(again);
          expect(await again.get("new")).toEqual(record("new", { scope: "after the cut" }));
          await again.close();
        });
      }
    },
  );
}

test("a clean close vouches for its last byte: a cut frame is refused, not served in its previous version", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  const last = log.frames.at(-1);
  await withBytes(log, log.bytes.subarray(0, (last?.end ?? 0) - 1), async (dir) => {
    const { store, errors } = await openQuietly(dir);
    expect(await codeOf(store.get("one"))).toBe("record_corrupt");
    expect(errors.some((error) => String(error).includes("Task one"))).toBe(true);
    await store.close();
  });
});

test("a write torn by a power cut is its previous version where it was never acknowledged", async () => {
  const log = await writeSmallLog(tempDir(), "killed");
  const last = log.frames.at(-1);
  const bytes = Buffer.from(log.bytes);
  bytes.fill(0, (last?.start ?? 0) + 100);
  await withBytes(log, bytes, async (dir) => {
    const { store, errors } = await openQuietly(dir);
    expect(await store.get("one")).toEqual(log.frames[0]?.state);
    expect(errors).toEqual([]);
    await store.update("one", { scope: "goes on" }, 1);
    await store.close();
    const { store: again, errors: later } = await openQuietly(dir);
    expect((await again.get("one"))?.scope).toBe("goes on");
    expect(later).toEqual([]);
    await again.close();
  });
});

test("frames that a clean close vouched for and that are zeros now are reported", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  const bytes = Buffer.from(log.bytes);
  bytes.fill(0, log.frames.at(-1)?.start);
  await withBytes(log, bytes, async (dir) => {
    const { store, errors } = await openQuietly(dir);
    expect(errors).toHaveLength(1);
    expect(await store.get("two")).toEqual(statesBefore(log, bytes.length).get("two"));
    await store.close();
  });
});

test("writes torn in front of whole ones are their previous versions, for this opening and all later ones", async () => {
  const root = tempDir();
  const written = join(root, "written");
  const { store } = await openQuietly(written);
  await store.create(record("known"));
  // One batch, of which the disk wrote the end only.
  await Promise.all([
    store.update("known", { result: bigResult(3_000) }, 1),
    store.create(record("new", { result: bigResult(3_000) })),
    store.create(record("whole")),
  ]);
  const dir = join(root, "log");
  copyWithoutLocks(written, dir);
  await store.close();
  const path = join(dir, readdirSync(dir).find((name) => name.endsWith(".log")) ?? "");
  const bytes = readFileSync(path);
  for (const text of ['{"content"', '{"content"']) {
    const at = bytes.indexOf(text);
    bytes.fill(0, at, at + 1_500);
  }
  writeFileSync(path, bytes);
  for (let opening = 0; opening < 3; opening += 1) {
    const { store: again, errors } = await openQuietly(dir);
    expect(await again.get("known")).toEqual(record("known"));
    expect(await again.get("new")).toBeUndefined();
    expect(await again.get("whole")).toEqual(record("whole"));
    await again.create(record(`later-${opening}`));
    await again.close();
    expect(errors).toEqual([]);
  }
});

test("a later good frame heals a damaged earlier one of the same task", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  const bytes = Buffer.from(log.bytes);
  const first = log.frames[0];
  bytes.fill(0xff, first?.start, first?.end);
  await withBytes(log, bytes, async (dir) => {
    const { store } = await openQuietly(dir);
    expect(await store.get("one")).toEqual(statesBefore(log, bytes.length).get("one"));
    await store.close();
  });
});

test("a whole frame overwritten with noise is found by the frame behind it, and its neighbours live", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  const index = log.frames.findIndex(({ taskId, state }) => taskId === "two" && state.version === 2);
  const frame = log.frames[index];
  const bytes = Buffer.from(log.bytes);
  bytes.fill(0xaa, frame?.start, frame?.end);
  await withBytes(log, bytes, async (dir) => {
    const { store, errors } = await openQuietly(dir);
    expect(await codeOf(store.get("two"))).toBe("record_corrupt");
    expect((await store.get("one"))?.status).toBe("completed");
    expect(errors).toHaveLength(1);
    const kept = readdirSync(join(dir, "quarantine"));
    expect(readFileSync(join(dir, "quarantine", kept[0] ?? ""))).toEqual(
      bytes.subarray(frame?.start, frame?.end),
    );
    await store.close();
  });
});

test("damage that belongs to nobody is reported, and opens", async () => {
  const log = await writeSmallLog(tempDir(), "closed");
  const bytes = Buffer.concat([
    log.bytes.subarray(0, FRAMES_START),
    Buffer.alloc(30, 0x11),
    log.bytes.subarray(FRAMES_START),
  ]);
  await withBytes(log, bytes, async (dir) => {
    const { store, errors } = await openQuietly(dir);
    expect(await store.get("two")).toEqual(statesBefore(log, log.bytes.length).get("two"));
    expect(errors.length).toBeGreaterThan(0);
    expect(existsSync(join(dir, "quarantine"))).toBe(true);
    await store.close();
  });
});

test("a log of a later format is refused with schema_too_new, and its lock is given back", async () => {
  const { crc32 } = await import("node:zlib");
  const log = await writeSmallLog(tempDir(), "closed");
  const bytes = Buffer.from(log.bytes);
  for (const at of [0, 4_224]) {
    bytes.writeUInt32LE(2, at + 8);
    bytes.writeUInt32LE(crc32(bytes.subarray(at, at + 124)), at + 124);
  }
  await withBytes(log, bytes, async (dir) => {
    expect(await codeOf(openQuietly(dir))).toBe("schema_too_new");
    expect(await codeOf(openQuietly(dir))).toBe("schema_too_new");
  });
});
