import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { isLongJobsError } from "@longjobs/core";
import { Upload } from "@tus/server";
import { expect, test } from "vitest";
import type { StagedUpload } from "../../src/disk/staged-files.ts";
import { StagingStore } from "../../src/disk/staging-store.ts";
import { brokenStream, someBytes, streamOf } from "./support/bytes.ts";
import { declare, openStaging, stage } from "./support/staging.ts";
import { tempDir } from "./support/temp-dir.ts";

const hostileIds = [
  "",
  ".",
  "..",
  "../escape",
  "a/b",
  "a\\b",
  "a\0b",
  "%2e%2e%2fescape",
  "a.part",
  "*",
  "__proto__",
  "-a",
  "a".repeat(300),
  "ä",
];

test("the directory is made for this user alone, and so is each file", async () => {
  const store = openStaging();
  await stage(store, "one", someBytes(10));
  expect(statSync(store.dir).mode & 0o777).toBe(0o700);
  for (const name of ["one.part", "one.json"]) {
    expect(statSync(join(store.dir, name)).mode & 0o777, name).toBe(0o600);
  }
});

test("a directory that others may read is tightened when it holds nothing but staged uploads", async () => {
  const dir = tempDir();
  chmodSync(dir, 0o755);
  await stage(new StagingStore({ dir }), "one", someBytes(1));
  chmodSync(dir, 0o755);
  await new StagingStore({ dir }).open();
  expect(statSync(dir).mode & 0o777).toBe(0o700);
});

test("a directory that others may read and that holds other files is refused, and left as it is", async () => {
  const dir = tempDir();
  writeFileSync(join(dir, "somebody's.txt"), "");
  chmodSync(dir, 0o755);
  const store = new StagingStore({ dir });
  await expect(store.open()).rejects.toThrow(TypeError);
  await expect(declare(store, "one")).rejects.toThrow(TypeError);
  expect(statSync(dir).mode & 0o777).toBe(0o755);
  chmodSync(dir, 0o700);
  // The failure was not kept.
  await store.open();
});

test("bad options are refused at the call", () => {
  expect(() => new StagingStore({ dir: "" })).toThrow(TypeError);
  expect(() => new StagingStore({ dir: "/x", expirationMs: Number.NaN })).toThrow(RangeError);
  expect(() => new StagingStore({ dir: "/x", expirationMs: -1 })).toThrow(RangeError);
});

test("an upload has what was declared about it, and its offset is the size of its file", async () => {
  const store = openStaging();
  const metadata = { filename: "ä.csv", empty: null };
  await store.create(
    new Upload({ id: "one", offset: 0, size: 8, metadata, creation_date: "2026-01-01T00:00:00.000Z" }),
  );
  expect(await store.write(streamOf(someBytes(2), someBytes(3)), "one", 0)).toBe(5);
  expect(statSync(join(store.dir, "one.part")).size).toBe(5);

  const reopened = new StagingStore({ dir: store.dir });
  expect(await reopened.getUpload("one")).toMatchObject({
    id: "one",
    size: 8,
    offset: 5,
    metadata,
    creation_date: "2026-01-01T00:00:00.000Z",
  });
  expect(await reopened.stagedBytes("one")).toBe(5);
});

test("bytes end up where they were sent, over any number of writes", async () => {
  const store = openStaging({ flush: true });
  const bytes = someBytes(300_000);
  await declare(store, "one", bytes.length);
  let offset = 0;
  for (const end of [1, 70_000, 70_001, 299_999, 300_000]) {
    offset = await store.write(streamOf(bytes.subarray(offset, end)), "one", offset);
    expect(offset).toBe(end);
  }
  expect(readFileSync(join(store.dir, "one.part")).equals(bytes)).toBe(true);
});

test("an upload of no bytes is one (P59)", async () => {
  const store = openStaging();
  await declare(store, "none", 0);
  expect(await store.write(streamOf(), "none", 0)).toBe(0);
  expect(await store.getUpload("none")).toMatchObject({ size: 0, offset: 0 });
});

test("an id is created once", async () => {
  const store = openStaging();
  await stage(store, "one", someBytes(4));
  await expect(declare(store, "one", 4)).rejects.toSatisfy((error) => isLongJobsError(error));
  expect(await store.stagedBytes("one")).toBe(4);
});

test("hostile ids are unknown on every call, and touch no file (P33)", async () => {
  const store = openStaging();
  await store.open();
  for (const id of hostileIds) {
    const calls: (() => Promise<unknown>)[] = [
      () => store.create(Object.assign(new Upload({ id: "x", offset: 0 }), { id })),
      () => store.write(streamOf(someBytes(1)), id, 0),
      () => store.getUpload(id),
      () => store.declareUploadLength(id, 1),
      () => store.remove(id),
      () => store.discard(id),
      () => store.stagedBytes(id),
      () => store.truncate(id, 0),
      () => store.openStaged(id),
      () => store.pathOf(id),
    ];
    for (const call of calls) {
      await expect(call(), JSON.stringify(id)).rejects.toMatchObject({
        code: "unknown_transfer",
        status_code: 404,
      });
    }
  }
  expect(readdirSync(store.dir)).toEqual([]);
  expect(readdirSync(join(store.dir, ".."))).toEqual(["staging"]);
});

test("an unknown id is unknown_transfer on every call but discard", async () => {
  const store = openStaging();
  const unknown = { code: "unknown_transfer" };
  await expect(store.write(streamOf(), "nobody", 0)).rejects.toMatchObject(unknown);
  await expect(store.getUpload("nobody")).rejects.toMatchObject(unknown);
  await expect(store.declareUploadLength("nobody", 1)).rejects.toMatchObject(unknown);
  await expect(store.remove("nobody")).rejects.toMatchObject(unknown);
  await expect(store.stagedBytes("nobody")).rejects.toMatchObject(unknown);
  await expect(store.truncate("nobody", 0)).rejects.toMatchObject(unknown);
  await expect(store.openStaged("nobody")).rejects.toMatchObject(unknown);
  await store.discard("nobody");
});

test("a write at another offset than the end of the staged bytes is refused with the true one, and stores nothing (P55)", async () => {
  const store = openStaging();
  await declare(store, "one", 100);
  await store.write(streamOf(Buffer.alloc(10, "a")), "one", 0);
  for (const offset of [0, 5, 9, 11, 90, 100, -1, 0.5, Number.NaN, Infinity]) {
    await expect(
      store.write(streamOf(Buffer.alloc(3, "b")), "one", offset),
      String(offset),
    ).rejects.toMatchObject({
      code: "offset_mismatch",
      retryable: true,
      partial: { cursor: 10 },
      status_code: 409,
    });
  }
  expect(readFileSync(join(store.dir, "one.part"), "utf8")).toBe("a".repeat(10));
});

test("past the declared size nothing is stored, however it is cut into pieces (P55)", async () => {
  for (const pieces of [[12], [10, 2], [4, 4, 4], [9, 3]]) {
    const store = openStaging();
    await declare(store, "one", 10);
    const stream = streamOf(...pieces.map((length) => Buffer.alloc(length, "x")));
    await expect(store.write(stream, "one", 0)).rejects.toMatchObject({
      code: "size_mismatch",
      partial: { cursor: 10 },
    });
    expect(await store.stagedBytes("one")).toBe(10);
  }
});

test("a stream that breaks rejects with its own error; what came before is kept, counted and continued (P58)", async () => {
  for (const flush of [true, false]) {
    const store = openStaging({ flush });
    const bytes = someBytes(100);
    await declare(store, "one", 100);
    const breakage = new Error("the client went away");
    const stream = brokenStream(breakage, bytes.subarray(0, 20), bytes.subarray(20, 50));
    await expect(store.write(stream, "one", 0)).rejects.toBe(breakage);
    expect(await store.stagedBytes("one")).toBe(50);
    expect(await store.write(streamOf(bytes.subarray(50)), "one", 50)).toBe(100);
    expect(readFileSync(join(store.dir, "one.part")).equals(bytes)).toBe(true);
  }
});

test("a second writer, a cut and a deletion during a write are transfer_busy, and reading is not (P56)", async () => {
  const store = openStaging();
  await declare(store, "one", 10);
  await declare(store, "two", 10);
  const stream = new PassThrough();
  const writing = store.write(stream, "one", 0);
  stream.write("12345");
  const busy = { code: "transfer_busy", retryable: true, status_code: 423 };
  await expect(store.write(streamOf(someBytes(1)), "one", 0)).rejects.toMatchObject(busy);
  await expect(store.truncate("one", 0)).rejects.toMatchObject(busy);
  await expect(store.remove("one")).rejects.toMatchObject(busy);
  await expect(store.discard("one")).rejects.toMatchObject(busy);
  expect(await store.stagedBytes("one")).toBeLessThanOrEqual(5);
  expect((await store.getUpload("one")).size).toBe(10);
  expect(await store.write(streamOf(someBytes(10)), "two", 0)).toBe(10);
  stream.end("67890");
  expect(await writing).toBe(10);
  // The refused ones left no mark.
  await store.remove("one");
});

test("an unknown size is declared once, and not below what is staged", async () => {
  const store = openStaging();
  await declare(store, "one");
  expect((await store.getUpload("one")).sizeIsDeferred).toBe(true);
  await store.write(streamOf(someBytes(10)), "one", 0);
  await expect(store.declareUploadLength("one", 9)).rejects.toMatchObject({
    code: "size_mismatch",
    partial: { cursor: 10 },
  });
  await expect(store.declareUploadLength("one", 10.5)).rejects.toThrow(RangeError);
  await store.declareUploadLength("one", 12);
  await store.declareUploadLength("one", 12);
  await expect(store.declareUploadLength("one", 13)).rejects.toMatchObject({ code: "size_mismatch" });
  expect((await new StagingStore({ dir: store.dir }).getUpload("one")).size).toBe(12);
  await expect(store.write(streamOf(someBytes(3)), "one", 10)).rejects.toMatchObject({
    code: "size_mismatch",
  });
});

test("staged bytes can be cut off, not extended", async () => {
  const store = openStaging({ flush: true });
  const bytes = someBytes(10);
  await stage(store, "one", bytes);
  for (const sizeBytes of [11, -1, 1.5, Number.NaN]) {
    await expect(store.truncate("one", sizeBytes), String(sizeBytes)).rejects.toMatchObject({
      code: "offset_mismatch",
      partial: { cursor: 10 },
    });
  }
  await store.truncate("one", 4);
  expect(readFileSync(join(store.dir, "one.part")).equals(bytes.subarray(0, 4))).toBe(true);
  await store.truncate("one", 0);
  expect(await store.stagedBytes("one")).toBe(0);
});

test("a removed upload leaves nothing behind (P60)", async () => {
  const store = openStaging();
  await stage(store, "one", someBytes(10));
  await stage(store, "two", someBytes(10));
  await store.remove("one");
  expect(readdirSync(store.dir).toSorted()).toEqual(["two.json", "two.part"]);
  await store.discard("two");
  expect(readdirSync(store.dir)).toEqual([]);
});

test("expiry slides with each write, deletes what nobody writes, and never what somebody writes", async () => {
  const store = openStaging({ expirationMs: 60_000 });
  const hourAgo = new Date(Date.now() - 3_600_000);
  for (const id of ["idle", "fresh", "written"]) {
    await store.create(new Upload({ id, offset: 0, size: 10, creation_date: hourAgo.toISOString() }));
  }
  for (const id of ["idle", "written"]) utimesSync(join(store.dir, `${id}.part`), hourAgo, hourAgo);
  const stream = new PassThrough();
  const writing = store.write(stream, "written", 0);
  // TUS tells clients the creation date plus the expiry.
  expect(new Date((await store.getUpload("fresh")).creation_date ?? 0).getTime()).toBeGreaterThan(
    hourAgo.getTime(),
  );
  expect(await store.deleteExpired()).toBe(1);
  await expect(store.getUpload("idle")).rejects.toMatchObject({ code: "unknown_transfer" });
  stream.end("0123456789");
  expect(await writing).toBe(10);
  expect(await store.stagedBytes("fresh")).toBe(0);
  expect(await store.deleteExpired()).toBe(0);
});

test("without an expiry nothing is ever deleted, and TUS is told the true creation date", async () => {
  const store = openStaging();
  const created = "2020-01-01T00:00:00.000Z";
  await store.create(new Upload({ id: "old", offset: 0, creation_date: created }));
  utimesSync(join(store.dir, "old.part"), new Date(created), new Date(created));
  expect(await store.deleteExpired()).toBe(0);
  expect((await store.getUpload("old")).creation_date).toBe(created);
});

test("the list tells every upload once, halves too, so that a sweep can delete them; strangers' files are left alone", async () => {
  const store = openStaging();
  await stage(store, "whole", someBytes(7));
  await stage(store, "moved", someBytes(7));
  // What a crash leaves between the two files of an upload, when it is made and when it was published.
  writeFileSync(join(store.dir, "half.part"), "123");
  mkdirSync(join(store.dir, "a.directory"));
  writeFileSync(join(store.dir, "README.txt"), "");
  await store.discard("moved");
  await declare(store, "moved", 7);
  rmSync(join(store.dir, "moved.part"));

  const found: StagedUpload[] = [];
  for await (const upload of store.list()) found.push(upload);
  expect(found.toSorted((a, b) => a.id.localeCompare(b.id))).toEqual([
    { id: "half", stagedBytes: 3, writtenAtMs: expect.any(Number) as number },
    { id: "moved", stagedBytes: 0, writtenAtMs: expect.any(Number) as number },
    { id: "whole", stagedBytes: 7, writtenAtMs: expect.any(Number) as number },
  ]);
  for (const { id } of found) await store.discard(id);
  expect(readdirSync(store.dir).toSorted()).toEqual(["README.txt", "a.directory"]);
});

test("links, directories and second names in the staging directory are never written through", async () => {
  const store = openStaging();
  const outside = join(store.dir, "..", "outside.txt");
  for (const id of ["linked", "directory", "named"]) await declare(store, id, 100);
  writeFileSync(outside, "outside");
  rmSync(join(store.dir, "linked.part"));
  symlinkSync(outside, join(store.dir, "linked.part"));
  rmSync(join(store.dir, "directory.part"));
  mkdirSync(join(store.dir, "directory.part"));
  rmSync(join(store.dir, "named.part"));
  linkSync(outside, join(store.dir, "named.part"));

  await expect(store.getUpload("linked")).rejects.toMatchObject({ code: "unknown_transfer" });
  await expect(store.openStaged("linked")).rejects.toSatisfy((error) => isLongJobsError(error));
  await expect(store.write(streamOf(someBytes(1)), "linked", 7)).rejects.toSatisfy((error) =>
    isLongJobsError(error),
  );
  await expect(store.write(streamOf(someBytes(1)), "directory", 0)).rejects.toSatisfy((error) =>
    isLongJobsError(error),
  );
  await expect(store.write(streamOf(someBytes(1)), "named", 7)).rejects.toMatchObject({ code: "not_active" });
  await expect(store.truncate("named", 0)).rejects.toMatchObject({ code: "not_active" });
  expect(readFileSync(outside, "utf8")).toBe("outside");
});

test("a damaged declaration is record_corrupt, and the other uploads are untouched", async () => {
  const store = openStaging();
  await stage(store, "good", someBytes(3));
  for (const text of [
    "",
    "{",
    "null",
    "[]",
    '{"format":2,"createdAt":"x"}',
    '{"format":1,"createdAt":"x","size":-1}',
  ]) {
    await declare(store, "bad", 3);
    writeFileSync(join(store.dir, "bad.json"), text);
    await expect(store.getUpload("bad"), text).rejects.toMatchObject({ code: "record_corrupt" });
    await store.discard("bad");
  }
  expect(await store.stagedBytes("good")).toBe(3);
});

test("what a crash left of a declaration is removed when the store is opened, unless it is being written", async () => {
  const store = openStaging();
  await declare(store, "one", 3);
  const old = join(store.dir, "one.0123456789abcdef.tmp");
  const young = join(store.dir, "one.fedcba9876543210.tmp");
  for (const path of [old, young]) writeFileSync(path, "{");
  utimesSync(old, 0, 0);
  await new StagingStore({ dir: store.dir }).open();
  expect(existsSync(old)).toBe(false);
  expect(existsSync(young)).toBe(true);
});
