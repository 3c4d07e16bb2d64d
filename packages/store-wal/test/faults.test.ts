import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { WalTaskStore } from "../src/index.ts";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import {
  errno,
  isSegment,
  wrappedFiles,
  type FileOperation,
  type Intercept,
} from "./support/wrapped-files.ts";

/** A file layer whose next operation that fits fails, or does half of its work. */
function faultyFiles(): {
  files: ReturnType<typeof wrappedFiles>;
  next: (fault: Fault) => void;
  always: (fault?: Fault) => void;
} {
  let once: Fault | undefined;
  let every: Fault | undefined;
  const files = wrappedFiles(async (operation, run) => {
    const fault = once?.fits(operation) === true ? once : every;
    if (fault?.fits(operation) !== true) return run();
    if (fault === once) once = undefined;
    return fault.act(operation, run);
  });
  return { files, next: (fault) => (once = fault), always: (fault) => (every = fault) };
}

interface Fault {
  fits(operation: FileOperation): boolean;
  act: Intercept;
}

const fails = (
  name: FileOperation["name"],
  code: string,
  where: (path: string) => boolean = isSegment,
): Fault => ({
  fits: (operation) => operation.name === name && where(operation.path),
  act: () => Promise.reject(errno(code)),
});

/** Writes the first part of the bytes, as a full disk or a signal does. */
const shortWrite = (share: number): Fault => ({
  fits: ({ name, path }) => name === "file.write" && isSegment(path),
  act: async ({ bytes, path, position }) => {
    const part = Math.floor((bytes?.length ?? 0) * share);
    const file = await wrappedFiles((_operation, run) => run()).open(path, "r+");
    await file.write(bytes ?? Buffer.alloc(0), part, position ?? 0);
    await file.close();
    return part;
  },
});

/** Starts writes together and says which were acknowledged and which rejected, and how. */
async function writeTogether(
  store: WalTaskStore,
  ids: readonly string[],
): Promise<Map<string, string | undefined>> {
  const codes = await Promise.all(ids.map((id) => codeOf(store.create(record(id, { scope: id })))));
  return new Map(ids.map((id, index) => [id, codes[index]]));
}

const ids = Array.from({ length: 10 }, (_, index) => `t${index}`);

for (const [title, fault] of [
  ["a short write", shortWrite(0.55)],
  ["a short write of nearly everything", shortWrite(0.999)],
  ["EIO on write", fails("file.write", "EIO")],
  ["EIO on flush", fails("file.flush", "EIO")],
] as const) {
  test(`after ${title} in a batch, what resolved is there after reopening and what rejected is absent (P37)`, async () => {
    const dir = tempDir();
    const { files, next } = faultyFiles();
    const { store } = await openStore(dir, { files });
    await store.create(record("before"));
    next(fault);
    const first = writeTogether(store, ids);
    const queued = writeTogether(store, ["q1", "q2"]);
    const outcomes = new Map([...(await first), ...(await queued)]);
    expect([...outcomes.values()].filter((code) => code === "store_unavailable").length).toBeGreaterThan(0);
    for (const [id, code] of outcomes) {
      expect(await store.get(id), id).toEqual(code === undefined ? record(id, { scope: id }) : undefined);
    }
    // The store heals without reopening.
    await store.update("before", { scope: "later" }, 1);
    await store.close();
    const { store: again, errors } = await openStore(dir);
    for (const [id, code] of outcomes) {
      expect(await again.get(id), `${id} after reopening`).toEqual(
        code === undefined ? record(id, { scope: id }) : undefined,
      );
    }
    expect((await again.get("before"))?.scope).toBe("later");
    expect(errors).toEqual([]);
  });
}

test("a rejected write is absent even when the process dies right after the rejection", async () => {
  const dir = tempDir();
  const { files, next } = faultyFiles();
  const { store } = await openStore(dir, { files });
  await store.create(record("before"));
  next(fails("file.flush", "EIO"));
  expect(await codeOf(store.update("before", { scope: "rejected" }, 1))).toBe("store_unavailable");
  const copy = join(tempDir(), "copy");
  copyWithoutLocks(dir, copy);
  const { store: again } = await openStore(copy);
  expect(await again.get("before")).toEqual(record("before"));
});

test("readers and watchers never see a write that was rejected, and a failed flush is never tried again", async () => {
  const dir = tempDir();
  const flushed: string[] = [];
  let isBroken = false;
  const files = wrappedFiles(async ({ name, path }, run) => {
    if (name === "file.flush" && isSegment(path)) {
      flushed.push(path);
      if (isBroken) {
        isBroken = false;
        throw errno("EIO");
      }
    }
    return run();
  });
  const { store } = await openStore(dir, { files });
  await store.create(record("a"));
  let notified = 0;
  await store.watch("a", () => (notified += 1));
  isBroken = true;
  const update = codeOf(store.update("a", { scope: "no" }, 1));
  const reads = await Promise.all(Array.from({ length: 20 }, () => store.get("a")));
  expect(await update).toBe("store_unavailable");
  for (const read of reads) expect(read).toEqual(record("a"));
  expect(notified).toBe(0);
  const failed = flushed.at(-2) ?? "";
  await store.update("a", { scope: "yes" }, 1);
  expect(flushed.slice(flushed.lastIndexOf(failed) + 1)).not.toContain(failed);
  expect(notified).toBe(1);
});

test("when not even a new file can be begun, writes stop, reads go on, and a later write tries again", async () => {
  const dir = tempDir();
  const { files, next, always } = faultyFiles();
  const { store } = await openStore(dir, { files });
  await store.create(record("a"));
  always(fails("open", "EMFILE"));
  next(fails("file.flush", "EIO"));
  expect(await codeOf(store.update("a", { scope: "x" }, 1))).toBe("store_unavailable");
  expect(await codeOf(store.update("a", { scope: "x" }, 1))).toBe("store_unavailable");
  expect(await store.get("a")).toEqual(record("a"));
  always(undefined);
  expect(await store.update("a", { scope: "y" }, 1)).toBe(2);
  await store.close();
  const { store: again } = await openStore(dir);
  expect((await again.get("a"))?.scope).toBe("y");
});

test("out of descriptors, a read gives back those that nobody uses; a failed read is store_unavailable, not damage", async () => {
  const dir = tempDir();
  const { files, next, always } = faultyFiles();
  const { store } = await openStore(dir, { files, cacheBytes: 0 });
  await store.create(record("a"));
  await store.close();
  const { store: again, errors } = await openStore(dir, { files, cacheBytes: 0 });
  next(fails("open", "EMFILE"));
  expect(await again.get("a")).toEqual(record("a"));
  always(fails("file.read", "EIO"));
  expect(await codeOf(again.get("a"))).toBe("store_unavailable");
  always(undefined);
  expect(await again.get("a")).toEqual(record("a"));
  expect(errors).toEqual([]);
});

test("a directory that may not be written is store_unavailable with its cause, and nothing stays open", async () => {
  const { files, always } = faultyFiles();
  always(fails("open", "EACCES", () => true));
  await expect(openStore(tempDir(), { files })).rejects.toMatchObject({
    code: "store_unavailable",
    cause: { code: "EACCES" },
  });
});

test("bytes that rot while the store is open are refused and reported once", async () => {
  const dir = tempDir();
  const { store, errors } = await openStore(dir, { cacheBytes: 0 });
  await store.create(record("a", { result: bigResult(5_000) }));
  await store.update("a", { scope: "x" }, 1);
  await store.create(record("b"));
  const path = `${dir}/${readdirSync(dir).find(isSegment)}`;
  const bytes = readFileSync(path);
  bytes[6_212] = (bytes[6_212] ?? 0) ^ 1;
  writeFileSync(path, bytes);
  expect(await codeOf(store.get("a"))).toBe("record_corrupt");
  expect(await codeOf(store.get("a"))).toBe("record_corrupt");
  expect(await codeOf(store.update("a", { scope: "y" }, 2))).toBe("record_corrupt");
  expect(await store.get("b")).toEqual(record("b"));
  await store.close();
  expect(errors.map(String)).toEqual([expect.stringContaining("Task a is damaged")]);
  const { store: again } = await openStore(dir);
  expect(await codeOf(again.get("a"))).toBe("record_corrupt");
  expect(await again.get("b")).toEqual(record("b"));
});

test("slow flushes hold up nobody who reads, and close() waits for them", async () => {
  const dir = tempDir();
  let release = (): void => {};
  const gate = new Promise<void>((resolve) => (release = resolve));
  let isSlow = false;
  const files = wrappedFiles(async ({ name, path }, run) => {
    if (isSlow && name === "file.flush" && isSegment(path)) await gate;
    return run();
  });
  const { store } = await openStore(dir, { files });
  await store.create(record("a"));
  isSlow = true;
  let isDone = false;
  const update = store.update("a", { scope: "slow" }, 1).then(() => (isDone = true));
  expect(await store.get("a")).toEqual(record("a"));
  const closing = store.close();
  expect(isDone).toBe(false);
  release();
  await Promise.all([update, closing]);
  const { store: again } = await openStore(dir);
  expect((await again.get("a"))?.scope).toBe("slow");
});

test("close() gives back every descriptor and the lock even when its own writes fail", async () => {
  const dir = tempDir();
  let open = 0;
  let isBroken = false;
  const files = wrappedFiles(async ({ name }, run) => {
    if (isBroken && (name === "file.write" || name === "file.flush")) throw errno("EIO");
    const outcome = await run();
    if (name === "open") open += 1;
    if (name === "file.close") open -= 1;
    return outcome;
  });
  const { store, errors } = await openStore(dir, { files });
  await store.create(record("a"));
  isBroken = true;
  await store.close();
  await store.close();
  expect(open).toBe(0);
  expect(errors).toHaveLength(1);
});
