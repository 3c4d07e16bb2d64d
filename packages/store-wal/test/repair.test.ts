import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { TaskRecord } from "@longjobs/core";
import { expect, test } from "vitest";
import { ChildStore } from "./support/child-store.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { statesBefore, withBytes, writeSmallLog } from "./support/small-log.ts";
import { quickTempDir, tempDir } from "./support/temp-dir.ts";
import { photograph, runWal, walJson } from "./support/wal-command.ts";
import { errno, wrappedFiles } from "./support/wrapped-files.ts";

test(
  "whatever byte is flipped, the repaired log is healthy, and has every task that was not refused",
  { timeout: 180_000 },
  async () => {
    const root = quickTempDir();
    const log = await writeSmallLog(root, "closed");
    const final = statesBefore(log, log.bytes.length);
    for (let offset = 4_224; offset < log.bytes.length; offset += 17) {
      const bytes = Buffer.from(log.bytes);
      bytes[offset] = (bytes[offset] ?? 0) ^ 0x10;
      await withBytes(log, bytes, async (dir) => {
        const context = `byte ${offset} flipped`;
        const to = join(root, `repaired-${offset}`);
        const before = photograph(dir);
        const found = await walJson<{ copiedTasks: number }>(["repair", dir, "--to", to]);
        expect(photograph(dir), context).toEqual(before);
        expect(found, context).toMatchObject({ code: 1, healthy: false });
        expect(await walJson(["verify", to]), context).toMatchObject({ code: 0, damage: [] });

        const { store: old } = await openStore(dir);
        const { store, errors } = await openStore(to);
        let kept = 0;
        for (const [taskId, state] of final) {
          const isRefused = (await codeOf(old.get(taskId))) === "record_corrupt";
          expect(await store.get(taskId), context).toEqual(isRefused ? undefined : state);
          kept += isRefused ? 0 : 1;
        }
        expect([found.copiedTasks, errors], context).toEqual([kept, []]);
        await old.close();
        await store.close();
      });
    }
  },
);

test("repair --json has this shape; the table says what was left out", async () => {
  const root = tempDir();
  const log = await writeSmallLog(root, "closed");
  const bytes = Buffer.from(log.bytes);
  bytes[bytes.length - 40] = 0;
  await withBytes(log, bytes, async (dir) => {
    const to = join(root, "new");
    expect(await walJson(["repair", dir, "--to", to])).toEqual({
      code: 1,
      format: 1,
      command: "repair",
      dir,
      owner: expect.objectContaining({ state: "closed" }) as object,
      files: expect.any(Array) as object[],
      to,
      copiedTasks: 3,
      healthy: false,
      counts: { tasks: 4, healthyTasks: 3, damagedTasks: 1, unendedWrites: 0 },
      liveBytes: expect.any(Number) as number,
      garbageBytes: expect.any(Number) as number,
      damage: [expect.objectContaining({ kind: "task", taskId: "one" })],
    });
    const { printed } = await runWal(["repair", dir, "--to", join(root, "newer")]);
    expect(printed).toContain("damaged: one\n");
    expect(printed).toContain(`copied 3 tasks to ${join(root, "newer")}; 1 damaged task left out\n`);
  });
});

test("version, birth and life are kept: a task expires when it would have", async () => {
  const root = tempDir();
  const bornAtMs = Date.parse("2026-02-01T00:00:00.000Z");
  const { store } = await openStore(join(root, "old"), { now: () => bornAtMs });
  await store.create(record("short", { ttlMs: 60_000, version: 41 }));
  await store.update("short", { result: bigResult(2_000), ttlMs: 90_000 }, 41);
  await store.create(record("half \uD800", { scope: "lone surrogate" }));
  const state = await store.get("short");
  await store.close();

  expect((await runWal(["repair", join(root, "old"), "--to", join(root, "new")])).code).toBe(0);
  let nowMs = bornAtMs + 89_999;
  const { store: fresh } = await openStore(join(root, "new"), { now: () => nowMs });
  expect(await fresh.get("short")).toEqual(state);
  expect(await fresh.get("half \uD800")).toEqual(record("half \uD800", { scope: "lone surrogate" }));
  expect(await fresh.update("short", { scope: "goes on" }, 42)).toBe(43);
  nowMs += 2;
  expect(await fresh.get("short")).toBeUndefined();
});

test(
  "the log of a killed process is repaired to what the store would serve",
  { timeout: 60_000 },
  async () => {
    const root = tempDir();
    const dir = join(root, "killed");
    const child = await ChildStore.start();
    const options = { dir, segmentBytes: 64 * 1024, compactionFloorBytes: 64 * 1024 };
    await child.ask({ ask: "open", options });
    let left = 800;
    const enough = child.hears((tell) => tell.told === "wrote" && (left -= 1) === 0);
    child.say({ ask: "load", prefix: "k", writers: 8 });
    await enough;
    await child.kill();

    const copy = join(root, "copy");
    cpSync(dir, copy, { recursive: true });
    const to = join(root, "new");
    expect(await walJson(["repair", dir, "--to", to])).toMatchObject({
      code: 0,
      owner: { state: "not_closed", pid: child.process.pid },
      copiedTasks: 8,
    });
    const { store: old } = await openStore(copy);
    const { store } = await openStore(to);
    for (let writer = 0; writer < 8; writer += 1) {
      const expected = (await old.get(`k-${writer}`)) as TaskRecord;
      expect(expected.version).toBeGreaterThan(1);
      expect(await store.get(`k-${writer}`)).toEqual(expected);
    }
  },
);

test("a target that exists, or lies in the log or around it, is refused, and nothing is touched", async () => {
  const root = tempDir();
  const { dir } = await writeSmallLog(root, "closed");
  mkdirSync(join(root, "there"));
  symlinkSync(dir, join(root, "link"));
  const before = photograph(root);
  for (const to of ["there", "log", "log/inside", "link/inside", "."]) {
    const found = await walJson(["repair", dir, "--to", to], { directory: root });
    expect(found, to).toMatchObject({ code: 3, error: { code: "bad_target" } });
  }
  expect(photograph(root)).toEqual(before);
});

test.each([
  ["ENOSPC", "file.write", /^no_space$/],
  ["EIO", "file.write", /^store_unavailable$/],
  ["EIO", "file.close", /^store_unavailable$/],
  ["EACCES", "rename", /^EACCES$/],
] as const)("%s of a %s fails the repair, and leaves nothing behind", async (code, operation, told) => {
  const root = tempDir();
  const { dir } = await writeSmallLog(root, "closed");
  const before = readdirSync(root).toSorted();
  let hasFailed = false;
  const files = wrappedFiles(async ({ name, path }, run) => {
    const isNew = path.includes("repair-") && (path.endsWith(".log") || name === "rename");
    if (hasFailed || name !== operation || !isNew) return run();
    if (name === "file.close") await run();
    // A file that does not close is told once; a disk that is full stays so.
    hasFailed = name === "file.close";
    throw errno(code);
  });
  const found = await walJson(["repair", dir, "--to", join(root, "new")], { files });
  expect(found).toMatchObject({ code: 3, error: { code: expect.stringMatching(told) as string } });
  expect(readdirSync(root).toSorted()).toEqual(before);
});

test("an owner that comes while a log is repaired is noticed before the new one has its name", async () => {
  const root = tempDir();
  const { dir } = await writeSmallLog(root, "closed");
  let hasCome = false;
  const files = wrappedFiles(async ({ name, path }, run) => {
    if (!hasCome && name === "file.write" && path.includes("repair-")) {
      hasCome = true;
      await openStore(dir);
    }
    return run();
  });
  const found = await walJson(["repair", dir, "--to", join(root, "new")], { files });
  expect(found).toMatchObject({ code: 3, error: { code: "store_locked" } });
  expect(existsSync(join(root, "new"))).toBe(false);
});

test("bytes that do not read back are not given the name", async () => {
  const root = tempDir();
  const { dir } = await writeSmallLog(root, "closed");
  const files = wrappedFiles(async ({ name, path, bytes, position }, run) => {
    if (name === "file.write" && path.includes("repair-") && path.endsWith(".log") && (position ?? 0) > 0) {
      const { nodeFiles } = await import("../src/node-file-layer.ts");
      const file = await nodeFiles.open(path, "r+");
      await file.write((bytes ?? Buffer.alloc(0)).fill(1, 100, 101), bytes?.length ?? 0, position ?? 0);
      await file.close();
      return bytes?.length;
    }
    return run();
  });
  const found = await walJson(["repair", dir, "--to", join(root, "new")], { files });
  expect(found).toMatchObject({ code: 3, error: { code: "store_unavailable" } });
  expect(existsSync(join(root, "new"))).toBe(false);
});
