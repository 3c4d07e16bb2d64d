import { existsSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { copyWithoutLocks } from "./support/crash-store.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import { errno, wrappedFiles } from "./support/wrapped-files.ts";
import type { FileLayer } from "../src/file-layer.ts";

const reserveBytes = 256 * 1024;

/** A disk that can be full: files grow no more, but space that a file has already may be written. */
function fullDisk(): { files: FileLayer; fill: () => void; free: () => void } {
  let isFull = false;
  const sizes = new Map<string, number>();
  const files = wrappedFiles(async ({ name, path, target, bytes, position }, run) => {
    if (name === "rename" && target !== undefined) sizes.set(target, sizes.get(path) ?? 0);
    if (name === "freeBytes") return isFull ? 0 : 1e12;
    if (name === "file.write" && !path.includes("lock")) {
      const size = sizes.get(path) ?? 0;
      const end = (position ?? 0) + (bytes?.length ?? 0);
      if (isFull && end > Math.max(size, path.includes("reserve") ? reserveBytes : 0)) throw errno("ENOSPC");
      sizes.set(path, Math.max(size, end));
    }
    return run();
  });
  return { files, fill: () => (isFull = true), free: () => (isFull = false) };
}

test("on a full disk terminal writes go to the reserve, others get no_space, and writing resumes without reopening", async () => {
  const dir = tempDir();
  const { files, fill, free } = fullDisk();
  const { store, errors } = await openStore(dir, { files, reserveBytes });
  for (const id of ["a", "b", "c"]) await store.create(record(id));
  expect(existsSync(join(dir, "reserve"))).toBe(true);
  fill();
  const [ordinary, terminal, create] = await Promise.all([
    codeOf(store.update("a", { scope: "x" }, 1)),
    codeOf(store.update("b", { status: "completed", result: bigResult(2_000) }, 1)),
    codeOf(store.create(record("d"))),
  ]);
  expect([ordinary, terminal, create]).toEqual(["no_space", undefined, "no_space"]);
  expect(existsSync(join(dir, "reserve"))).toBe(false);
  expect(await codeOf(store.update("a", { scope: "x" }, 1))).toBe("no_space");
  expect(await store.update("c", { status: "cancelled" }, 1)).toBe(2);
  expect(await store.get("a")).toEqual(record("a"));
  expect(await store.get("b")).toMatchObject({ status: "completed", result: bigResult(2_000) });

  free();
  expect(await store.update("a", { scope: "back" }, 1)).toBe(2);
  expect(existsSync(join(dir, "reserve"))).toBe(true);
  await store.create(record("e"));
  await store.close();
  expect(errors).toEqual([]);

  const { store: again, errors: later } = await openStore(dir);
  expect((await again.get("a"))?.scope).toBe("back");
  expect((await again.get("b"))?.status).toBe("completed");
  expect((await again.get("c"))?.status).toBe("cancelled");
  expect(await again.get("d")).toBeUndefined();
  expect(await again.get("e")).toBeDefined();
  expect(later).toEqual([]);
});

test("a log that was killed while it ran on the reserve opens with everything that was acknowledged", async () => {
  const dir = tempDir();
  const { files, fill } = fullDisk();
  const { store } = await openStore(dir, { files, reserveBytes });
  await store.create(record("a"));
  fill();
  await store.update("a", { status: "completed" }, 1);
  const copy = join(tempDir(), "copy");
  copyWithoutLocks(dir, copy);
  const { store: again, errors } = await openStore(copy);
  expect((await again.get("a"))?.status).toBe("completed");
  expect(errors).toEqual([]);
});

test("a reserve that is used up gives no_space to terminal writes too, and loses nothing", async () => {
  const dir = tempDir();
  const { files, fill, free } = fullDisk();
  const { store } = await openStore(dir, { files, reserveBytes });
  const ids = Array.from({ length: 8 }, (_, index) => `t${index}`);
  for (const id of ids) await store.create(record(id));
  fill();
  const codes = [];
  for (const id of ids)
    codes.push(await codeOf(store.update(id, { status: "completed", result: bigResult(60_000) }, 1)));
  expect(codes.filter((code) => code === undefined)).toHaveLength(4);
  expect(codes.filter((code) => code === "no_space")).toHaveLength(4);
  free();
  for (const [index, id] of ids.entries()) {
    if (codes[index] !== undefined) await store.update(id, { status: "failed" }, 1);
    expect((await store.get(id))?.version).toBe(2);
  }
});

test("on the reserve a terminal write is not refused because of what arrives beside it", async () => {
  for (const isOnReserve of [false, true]) {
    const { files, fill } = fullDisk();
    const { store } = await openStore(tempDir(), { files, reserveBytes });
    for (const id of ["a", "b", "c", "d"]) await store.create(record(id));
    fill();
    if (isOnReserve) await store.update("d", { status: "cancelled" }, 1);
    const codes = await Promise.all([
      codeOf(store.update("a", { result: bigResult(300 * 1024) }, 1)),
      codeOf(store.update("b", { status: "completed", result: bigResult(2_000) }, 1)),
      codeOf(store.update("c", { status: "completed", result: bigResult(300 * 1024) }, 1)),
    ]);
    expect(codes).toEqual(["no_space", undefined, "no_space"]);
    expect((await store.get("b"))?.status).toBe("completed");
  }
});

test("tasks that expire while the disk is full leave half of the reserve to terminal writes", async () => {
  const { files, fill } = fullDisk();
  let nowMs = 1_000_000;
  const { store } = await openStore(tempDir(), { files, reserveBytes, now: () => nowMs });
  const ids = Array.from({ length: 60 }, (_, index) => `t${index}`);
  for (const id of ids) await store.create(record(id));
  await Promise.all(
    Array.from({ length: 3_000 }, (_, index) => store.create(record(`e${index}`, { ttlMs: 1_000 }))),
  );
  fill();
  nowMs += 1_000;
  await store.update("t0", { status: "cancelled" }, 1);
  expect(await codeOf(store.sweep())).toBe("no_space");
  let ended = 0;
  for (const id of ids.slice(1)) {
    const code = await codeOf(store.update(id, { status: "completed", result: bigResult(2_000) }, 1));
    if (code === undefined) ended += 1;
  }
  expect(ended).toBeGreaterThan(45);
});

test("without a reserve a full disk is no_space for everybody until there is space", async () => {
  const dir = tempDir();
  const { files, fill, free } = fullDisk();
  const { store } = await openStore(dir, { files });
  await store.create(record("a"));
  fill();
  expect(await codeOf(store.update("a", { status: "completed" }, 1))).toBe("no_space");
  expect(await codeOf(store.update("a", { scope: "x" }, 1))).toBe("no_space");
  expect(await store.get("a")).toEqual(record("a"));
  free();
  expect(await store.update("a", { status: "completed" }, 1)).toBe(2);
});

test("a reserve whose making was cut off is made anew", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir, { reserveBytes });
  await store.create(record("a"));
  await store.close();
  truncateSync(join(dir, "reserve"), 1_000);
  writeFileSync(join(dir, "reserve-draft"), "half");
  const { store: again, errors } = await openStore(dir, { reserveBytes });
  await again.create(record("b"));
  expect(statSync(join(dir, "reserve")).size).toBe(reserveBytes);
  expect(errors).toEqual([]);
});
