import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { FRAMES_START } from "../src/segment-header.ts";
import { realWorld } from "../src/lock-directory.ts";
import { decodeLock, encodeLock } from "../src/lock-file.ts";
import { ChildStore } from "./support/child-store.ts";
import { openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { quickTempDir, tempDir } from "./support/temp-dir.ts";
import { photograph, runWal, walJson } from "./support/wal-command.ts";
import { errno, isSegment, wrappedFiles } from "./support/wrapped-files.ts";

const bornAt = "2026-05-31T12:00:00.000Z";

/** Two tasks, one of them with everything a task may say about its work. */
async function writeLog(): Promise<string> {
  const dir = join(tempDir(), "tasks");
  const { store } = await openStore(dir, { now: () => Date.parse(bornAt) });
  await store.create(record("plain"));
  const secret = { statusMessage: "secret 1", scope: "secret 2", progress: { message: "secret 3" } };
  await store.create(record("full", { ttlMs: 3_600_000, ...secret }));
  await store.update("full", { status: "completed", result: bigResult(1_000, "secret 4 ") }, 1);
  await store.close();
  return dir;
}

test("inspect --json has this shape, and no payload in it", async () => {
  const dir = await writeLog();
  const before = photograph(dir);
  const { code, printed, errors } = await runWal(["inspect", dir, "--json"]);
  expect(JSON.parse(printed)).toEqual({
    format: 1,
    command: "inspect",
    dir,
    owner: {
      state: "closed",
      pid: process.pid,
      host: expect.any(String) as string,
      since: expect.stringMatching(/^\d{4}-.+Z$/) as string,
    },
    files: [
      {
        name: "segment-0000000001-0000000001.log",
        bytes: expect.any(Number) as number,
        liveBytes: expect.any(Number) as number,
        garbageBytes: expect.any(Number) as number,
      },
    ],
    tasks: [
      {
        taskId: "plain",
        status: "working",
        version: 1,
        createdAt: "2026-01-01T00:00:00.000Z",
        lastUpdatedAt: "2026-01-01T00:00:00.000Z",
        bornAt,
        expiresAt: null,
        isExpired: false,
        payloads: {},
        damage: null,
      },
      {
        taskId: "full",
        status: "completed",
        version: 2,
        createdAt: "2026-01-01T00:00:00.000Z",
        lastUpdatedAt: "2026-01-01T00:00:00.000Z",
        bornAt,
        expiresAt: "2026-05-31T13:00:00.000Z",
        isExpired: true,
        payloads: { statusMessage: 10, scope: 10, progress: 22, result: 9_039 },
        damage: null,
      },
    ],
    healthy: true,
    counts: { tasks: 2, healthyTasks: 2, damagedTasks: 0, unendedWrites: 0 },
    liveBytes: expect.any(Number) as number,
    garbageBytes: expect.any(Number) as number,
    damage: [],
  });
  expect([code, errors]).toEqual([0, ""]);
  expect(photograph(dir)).toEqual(before);
});

test("the sizes are those that the store has", async () => {
  const dir = await writeLog();
  const found = await walJson<{ files: { bytes: number; liveBytes: number; garbageBytes: number }[] }>([
    "inspect",
    dir,
  ]);
  const { store } = await openStore(dir);
  const { liveBytes, garbageBytes } = store.stats();
  expect(found).toMatchObject({ liveBytes, garbageBytes });
  expect(found.files[0]).toEqual({ ...found.files[0], liveBytes, garbageBytes });
  expect(found.files[0]?.bytes).toBe(liveBytes + garbageBytes + FRAMES_START);
});

test("the table shows how tasks stand, and no payload either", async () => {
  const { code, printed } = await runWal(["inspect", await writeLog()]);
  expect(printed).toMatch(/^closed by process \d+ on /m);
  expect(printed).toMatch(/^plain +working +1 +2026-01-01T00:00:00.000Z +never$/m);
  expect(printed).toMatch(
    /^full +completed +2 +2026-01-01T00:00:00.000Z +2026-05-31T13:00:00.000Z \(expired\) +statusMessage 10 B, .+ result 8.8 KiB$/m,
  );
  expect(printed).toMatch(/^2 tasks, .+: no damage$/m);
  expect(printed).not.toContain("secret");
  expect(code).toBe(0);
});

test("--payloads shows the records, --task one of them", async () => {
  const dir = await writeLog();
  const { printed } = await runWal(["inspect", dir, "--payloads"]);
  for (const secret of [1, 2, 3, 4]) expect(printed).toContain(`secret ${secret}`);
  const args = ["inspect", dir, "--payloads", "--task", "plain"];
  const { tasks } = await walJson<{ tasks: { record: unknown }[] }>(args);
  expect(tasks.map((task) => task.record)).toEqual([record("plain")]);
});

test("--limit shortens the list, and the table says by how much", async () => {
  const dir = await writeLog();
  const { printed } = await runWal(["inspect", dir, "--limit", "1"]);
  expect(printed).toContain("… and 1 more; --limit shows them");
  expect(printed).toMatch(/^2 tasks/m);
  const found = await walJson<{ tasks: object[] }>(["inspect", dir, "--limit", "1"]);
  expect(found.tasks).toHaveLength(1);
  expect(found).toMatchObject({ counts: { tasks: 2 } });
});

test("what a log contains does not steer the terminal", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir);
  await store.create(record("\u001B]0;title\u0007\u009B31m\nfirst", { scope: "\u009B2J" }));
  await store.close();
  const { printed } = await runWal(["inspect", dir, "--payloads"]);
  // oxlint-disable-next-line no-control-regex -- these are what must not come through
  expect(printed).not.toMatch(/[\u0000-\u0009\u000B-\u001F\u007F-\u009F]/);
  expect(printed).toContain(String.raw`\u{1b}]0;title`);
});

test("a log that a process has open is refused, with its holder, and nothing changes", async () => {
  const dir = tempDir();
  const child = await ChildStore.start();
  await child.ask({ ask: "open", options: { dir } });
  await child.ask({ ask: "create", taskId: "one" });
  for (const args of [
    ["inspect", dir],
    ["verify", dir],
    ["repair", dir, "--to", join(tempDir(), "new")],
  ]) {
    const { code, printed, errors } = await runWal([...args, "--json"]);
    expect(code).toBe(3);
    expect(JSON.parse(printed)).toEqual({
      format: 1,
      command: args[0],
      error: {
        code: "store_locked",
        message: expect.any(String) as string,
        partial: {
          dir,
          pid: child.process.pid,
          host: expect.any(String) as string,
          since: expect.any(String) as string,
        },
      },
    });
    expect(errors).toContain(`${dir} is in use by process ${child.process.pid}`);
  }
  const names = Object.keys(photograph(dir)).toSorted();
  expect(names).toEqual([".", "lock.1", "segment-0000000001-0000000001.log"]);
  expect(await child.ask({ ask: "create", taskId: "two" })).toEqual({ told: "created", taskId: "two" });
  await child.kill();
  expect(await walJson(["verify", dir])).toMatchObject({
    code: 0,
    owner: { state: "not_closed", pid: child.process.pid },
    counts: { tasks: 2 },
  });
});

test.each([
  ["verify", "while it is scanned", "holds", 1],
  ["verify", "while it is scanned", "closes", 1],
  ["inspect", "while it is scanned", "holds", 1],
  ["verify", "while its tasks are read", "holds", 4],
] as const)("%s notices an owner that comes %s, and %s it", async (command, _when, what, atRead) => {
  const dir = await writeLog();
  let reads = 0;
  const files = wrappedFiles(async ({ name, path }, run) => {
    if (name === "file.read" && isSegment(path)) reads += 1;
    if (name === "file.read" && isSegment(path) && reads === atRead) {
      const { store } = await openStore(dir);
      if (what === "closes") await store.close();
    }
    return run();
  });
  // A document that had begun would not parse: nothing is printed of a log that has an owner.
  const found = await walJson([command, dir], { files });
  expect(reads).toBeGreaterThanOrEqual(atRead);
  expect(found).toMatchObject({ code: 3, error: { code: "store_locked" } });
});

test("an owner on another host is waited for once, and a sign of life while reading is noticed", async () => {
  for (const beats of [false, true]) {
    const dir = tempDir();
    const { store } = await openStore(dir);
    await store.create(record("one"));
    let waits = 0;
    let monotonicMs = 0;
    const files = wrappedFiles(async ({ name, path }, run) => {
      const lock = join(dir, "lock.1");
      const content = decodeLock(readFileSync(lock));
      if (beats && name === "file.read" && isSegment(path) && content !== undefined)
        writeFileSync(lock, encodeLock({ ...content, counter: content.counter + 1 }));
      return run();
    });
    const world = {
      ...realWorld(),
      probe: () => "unknown" as const,
      wait: (ms: number): Promise<void> => {
        waits += 1;
        monotonicMs += ms;
        return Promise.resolve();
      },
      monotonicMs: () => monotonicMs,
    };
    const { code, errors } = await runWal(["verify", dir], { files, world });
    expect(errors).toContain("waiting ten seconds for a sign of life");
    expect(code).toBe(beats ? 3 : 0);
    if (!beats) expect(waits).toBe(40);
  }
});

test.each(["nowhere", "file", "empty"])("%s is no log: exit code 3", async (name) => {
  const root = tempDir();
  writeFileSync(join(root, "file"), "text");
  mkdirSync(join(root, "empty"));
  expect(await walJson(["inspect", name], { directory: root })).toMatchObject({
    code: 3,
    error: { code: "not_a_log" },
  });
});

test("a disk that does not answer is no damage: exit code 3", async () => {
  const dir = await writeLog();
  for (const code of ["EIO", "EACCES"]) {
    const files = wrappedFiles(async ({ name, path }, run) => {
      if ((name === "file.read" || name === "open") && isSegment(path)) throw errno(code);
      return run();
    });
    const { code: exit, errors } = await runWal(["verify", dir], { files });
    expect([exit, errors]).toEqual([3, expect.stringContaining(code)]);
  }
});

test("a log of a later version is not judged: exit code 3", async () => {
  const dir = await writeLog();
  const { crc32 } = await import("node:zlib");
  const header = Buffer.alloc(FRAMES_START);
  for (const at of [0, 4_224]) {
    header.set([0xf5, 0x4c, 0x4a, 0x57, 0x41, 0x4c, 0x0d, 0x0a], at);
    header.writeUInt32LE(99, at + 8);
    header.writeUInt32LE(crc32(header.subarray(at, at + 124)), at + 124);
  }
  writeFileSync(join(dir, "segment-0000000009-0000000001.log"), header);
  expect(await walJson(["verify", dir])).toMatchObject({ code: 3, error: { code: "schema_too_new" } });
});

test(
  "100,000 tasks are read within bounded time, with progress on the error stream only",
  { timeout: 120_000 },
  async () => {
    const dir = quickTempDir();
    const { store } = await openStore(dir, { fsync: false });
    for (let from = 0; from < 100_000; from += 1_000) {
      const ids = Array.from({ length: 1_000 }, (_, index) => `task-${from + index}`);
      await Promise.all(ids.map((taskId) => store.create(record(taskId))));
    }
    await store.close();

    const startedMs = performance.now();
    const { code, printed, errors } = await runWal(["verify", dir, "--json"]);
    expect(performance.now() - startedMs).toBeLessThan(30_000);
    expect([code, JSON.parse(printed)]).toMatchObject([0, { counts: { tasks: 100_000 }, healthy: true }]);
    expect(errors.split("\n").every((line) => /^$|^read \d+ % of \d+ (bytes|tasks)$/.test(line))).toBe(true);

    const inspected = await walJson<{ tasks: { taskId: string }[] }>(["inspect", dir]);
    expect(new Set(inspected.tasks.map(({ taskId }) => taskId)).size).toBe(100_000);
    const { printed: table } = await runWal(["inspect", dir]);
    expect(table).toContain("… and 99900 more");
  },
);

test("a terminal has progress on one line, which is gone at the end; a file has it line by line", async () => {
  const dir = await writeLog();
  for (const isTerminal of [true, false]) {
    let monotonicMs = 0;
    const world = { self: { bootId: "", pidNamespace: "", pid: 0, startTime: "", host: "" } };
    const { errors } = await runWal(["verify", dir], {
      isTerminal,
      world: {
        ...world,
        probe: () => "dead",
        wait: () => Promise.resolve(),
        monotonicMs: () => (monotonicMs += 2_000),
      },
    });
    const clear = "\r\u001B[K";
    if (isTerminal) {
      const shown = errors.split(clear);
      expect([shown.at(0), shown.at(-1)]).toEqual(["", ""]);
      expect(shown[1]).toMatch(/^read \d+ % of \d+ bytes$/);
      expect(errors).not.toContain("\n");
    } else expect(errors).toMatch(/^(read \d+ % of \d+ (bytes|tasks)\n)+$/);
  }
});
