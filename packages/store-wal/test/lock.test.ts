import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { lockDirectory, type LockWorld } from "../src/lock-directory.ts";
import { decodeLock, encodeLock, type LockContent } from "../src/lock-file.ts";
import { nodeFiles } from "../src/node-file-layer.ts";
import { identifyProcess, probeProcess } from "../src/process-identity.ts";
import { ChildStore } from "./support/child-store.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import { errno, isSegment, wrappedFiles } from "./support/wrapped-files.ts";

const locksIn = (dir: string): string[] => readdirSync(dir).filter((name) => name.startsWith("lock"));

function writeLock(
  dir: string,
  epoch: number,
  holder: Partial<LockContent["holder"]>,
  fields: Partial<LockContent> = {},
): void {
  const content = {
    state: "held" as const,
    dir,
    nonce: "n",
    since: "2026-01-01T00:00:00.000Z",
    counter: 1,
    ...fields,
  };
  writeFileSync(
    join(dir, `lock.${epoch}`),
    encodeLock({ ...content, holder: { ...identifyProcess(), ...holder } }),
  );
}

test("a second open() in the same process is refused with the holder and the directory, and changes nothing (P39)", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir);
  await store.create(record("a"));
  await expect(openStore(dir)).rejects.toMatchObject({
    code: "store_locked",
    partial: { dir, pid: process.pid, host: hostname() },
  });
  await store.update("a", { scope: "still mine" }, 1);
  await store.close();
  const { store: again } = await openStore(dir);
  expect((await again.get("a"))?.scope).toBe("still mine");
});

// More in a long run: LONGJOBS_LOCK_ROUNDS=50.
const rounds = Number(process.env["LONGJOBS_LOCK_ROUNDS"] ?? 6);

test(
  "of 8 processes that start together exactly one owns the directory; nothing acknowledged is lost (P39)",
  { timeout: 60_000 + rounds * 5_000 },
  async () => {
    const dir = tempDir();
    const children = await Promise.all(Array.from({ length: 8 }, () => ChildStore.start()));
    for (let round = 0; round < rounds; round += 1) {
      const answers = await Promise.all(
        children.map((child) => child.ask({ ask: "open", options: { dir } })),
      );
      const owners = children.filter((_, index) => answers[index]?.told === "opened");
      expect(owners).toHaveLength(1);
      for (const answer of answers) {
        if (answer.told === "failed") {
          expect(answer).toMatchObject({
            code: "store_locked",
            partial: { dir, pid: owners[0]?.process.pid },
          });
        }
      }
      const owner = owners[0];
      expect(await owner?.ask({ ask: "create", taskId: `round-${round}` })).toMatchObject({
        told: "created",
      });
      // Every other owner is killed instead of closing.
      if (round % 2 === 0) await owner?.ask({ ask: "close" });
      else if (owner !== undefined) {
        await owner.kill();
        children[children.indexOf(owner)] = await ChildStore.start();
      }
    }
    const { store, errors } = await openStore(dir);
    for (let round = 0; round < rounds; round += 1)
      expect(await store.get(`round-${round}`)).toEqual(record(`round-${round}`));
    expect(errors).toEqual([]);
  },
);

test("the lock of a killed process is taken over at once (P40)", async () => {
  const dir = tempDir();
  const child = await ChildStore.start();
  await child.ask({ ask: "open", options: { dir } });
  await child.ask({ ask: "create", taskId: "a" });
  expect(await codeOf(openStore(dir))).toBe("store_locked");
  await child.kill();
  const { store } = await openStore(dir);
  expect(await store.get("a")).toEqual(record("a"));
});

test("the lock of a process whose pid is another's by now is taken over at once (P40)", async () => {
  const dir = tempDir();
  writeLock(dir, 7, { pid: process.ppid, startTime: "1" });
  const { store } = await openStore(dir);
  await store.create(record("a"));
  expect(locksIn(dir)).toContain("lock.8");
});

test("a process that lives is alive, one that ended is dead, and one elsewhere is unknown", () => {
  const self = identifyProcess();
  expect(probeProcess(self)).toBe("alive");
  expect(probeProcess({ ...self, startTime: "1" })).toBe("dead");
  expect(probeProcess({ ...self, pid: 4_000_000 })).toBe("dead");
  expect(probeProcess({ ...self, pidNamespace: "pid:[1]" })).toBe("unknown");
  expect(probeProcess({ ...self, bootId: "another" })).toBe("unknown");
  const withoutProc = { ...self, bootId: "", pidNamespace: "", startTime: "" };
  expect(probeProcess(withoutProc, withoutProc)).toBe("alive");
  expect(probeProcess({ ...withoutProc, pid: 4_000_000 }, withoutProc)).toBe("dead");
  expect(probeProcess({ ...withoutProc, pid: process.ppid }, withoutProc)).toBe("unknown");
});

/** A clock that moves when somebody waits. */
function world(onWait: (nowMs: number) => void = () => {}): LockWorld & { readonly waitedMs: () => number } {
  let nowMs = 0;
  const self = identifyProcess();
  return {
    self,
    probe: (holder) => probeProcess(holder, self),
    monotonicMs: () => nowMs,
    wait: async (ms) => {
      nowMs += ms;
      onWait(nowMs);
    },
    waitedMs: () => nowMs,
  };
}

test("a holder on another host is dead only after its counter stood still for 10 s", async () => {
  const dir = tempDir();
  writeLock(dir, 3, { bootId: "elsewhere", host: "elsewhere", pid: 5 });
  const still = world();
  const { lock } = await lockDirectory(nodeFiles, dir, still);
  expect(lock.epoch).toBe(4);
  expect(still.waitedMs()).toBeGreaterThanOrEqual(10_000);
  await lock.close(undefined);

  const other = tempDir();
  writeLock(other, 3, { bootId: "elsewhere", host: "elsewhere", pid: 5 });
  const beating = world((nowMs) => {
    if (nowMs > 9_000)
      writeLock(other, 3, { bootId: "elsewhere", host: "elsewhere", pid: 5 }, { counter: 2 });
  });
  await expect(lockDirectory(nodeFiles, other, beating)).rejects.toMatchObject({
    code: "store_locked",
    partial: { host: "elsewhere", pid: 5 },
  });
});

test("a lock that nobody finished is taken over after 10 s, never sooner", async () => {
  const dir = tempDir();
  writeFileSync(join(dir, "lock.1"), "half of a lo");
  const patient = world();
  const { lock } = await lockDirectory(nodeFiles, dir, patient);
  expect(lock.epoch).toBe(2);
  expect(patient.waitedMs()).toBeGreaterThanOrEqual(10_000);
  await lock.close(undefined);
});

test("where hard links are refused, exclusive creation decides", async () => {
  const dir = tempDir();
  const files = wrappedFiles(({ name }, run) => (name === "link" ? Promise.reject(errno("EPERM")) : run()));
  const outcomes = await Promise.all(
    Array.from({ length: 5 }, () =>
      lockDirectory(files, dir, world()).then(
        ({ lock }) => lock,
        (error: unknown) => error,
      ),
    ),
  );
  const owners = outcomes.filter((outcome) => !(outcome instanceof Error));
  expect(owners).toHaveLength(1);
  for (const outcome of outcomes)
    if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "store_locked" });
});

test("an owner that was taken for dead acknowledges nothing more and stops", async () => {
  const dir = tempDir();
  const { store, errors } = await openStore(dir);
  await store.create(record("a"));
  writeLock(dir, 2, { pid: process.ppid });
  expect(await codeOf(store.update("a", { scope: "too late" }, 1))).toBe("store_unavailable");
  expect(await codeOf(store.update("a", { scope: "too late" }, 1))).toBe("store_locked");
  expect(await codeOf(store.get("a"))).toBe("store_locked");
  await store.close();
  expect(errors).toHaveLength(1);
  expect(decodeLock(readFileSync(join(dir, "lock.2")))?.state).toBe("held");
});

test("what an owner wrote after it had lost the directory is not part of the log", async () => {
  const dir = tempDir();
  const { store: old } = await openStore(dir);
  await old.create(record("a"));
  const lost = readdirSync(dir).find(isSegment) ?? "";
  const before = readFileSync(join(dir, lost));
  await codeOf(old.update("a", { scope: "ours" }, 1));
  const after = readFileSync(join(dir, lost));
  await old.close();
  // As another machine saw it, which then wrote itself.
  writeFileSync(join(dir, lost), before);
  for (const name of locksIn(dir)) rmSync(join(dir, name));
  const { store } = await openStore(dir);
  await store.update("a", { scope: "theirs" }, 1);
  await store.close();
  writeFileSync(join(dir, lost), after);
  const { store: again } = await openStore(dir);
  expect(await again.get("a")).toMatchObject({ scope: "theirs", version: 2 });
});

test("a copy of a directory that is in use opens; another name of the same directory does not", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir);
  await store.create(record("a"));
  const copy = join(tempDir(), "copy");
  cpSync(dir, copy, { recursive: true });
  const { store: copied } = await openStore(copy);
  await copied.update("a", { scope: "in the copy" }, 1);
  expect(await store.get("a")).toEqual(record("a"));
  const link = join(tempDir(), "link");
  symlinkSync(dir, link);
  expect(await codeOf(openStore(link))).toBe("store_locked");
});

test("epochs never repeat, and old lock files do not pile up", async () => {
  const dir = tempDir();
  for (let round = 1; round <= 12; round += 1) {
    const { store } = await openStore(dir);
    if (round === 12) await store.create(record("a"));
    await store.close();
    expect(locksIn(dir)).toContain(`lock.${round}`);
  }
  expect(locksIn(dir).length).toBeLessThanOrEqual(8);
  for (const name of locksIn(dir)) rmSync(join(dir, name));
  const { store } = await openStore(dir);
  expect(locksIn(dir)).toEqual(["lock.13"]);
  expect(await store.get("a")).toBeDefined();
});
