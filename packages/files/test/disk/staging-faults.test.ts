import { linkSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Upload } from "@tus/server";
import { expect, test } from "vitest";
import { StagingStore } from "../../src/disk/staging-store.ts";
import { someBytes, streamOf } from "./support/bytes.ts";
import { errnoError, watchedFiles } from "./support/failing-files.ts";
import { smallDisk } from "./support/small-disk.ts";
import { openFiles } from "./support/snapshot.ts";
import { declare, openStaging } from "./support/staging.ts";

test("a disk that is full in mid-chunk is no_space with the exact offset, and the upload goes on once there is space (P67)", async (context) => {
  const disk = smallDisk(1024 * 1024);
  if (disk === undefined)
    return context.skip("this user may not mount a small disk; the next test injects the fault");
  const filler = join(disk, "filler");
  writeFileSync(filler, someBytes(512 * 1024));
  const store = new StagingStore({ dir: join(disk, "staging"), flush: true });
  const bytes = someBytes(900 * 1024);
  await declare(store, "one");
  const error: unknown = await store.write(streamOf(bytes), "one", 0).then(
    () => undefined,
    (rejection: unknown) => rejection,
  );
  const staged = statSync(join(disk, "staging", "one.part")).size;
  expect(error).toMatchObject({
    code: "no_space",
    retryable: true,
    partial: { cursor: staged },
    status_code: 507,
  });
  expect(staged).toBeGreaterThan(0);
  expect(await store.stagedBytes("one")).toBe(staged);

  rmSync(filler);
  expect(await store.write(streamOf(bytes.subarray(staged)), "one", staged)).toBe(bytes.length);
  expect(readFileSync(join(disk, "staging", "one.part")).equals(bytes)).toBe(true);
});

test("a declared size beyond the free space is refused before anything is staged (P67)", async () => {
  const store = openStaging();
  await expect(declare(store, "huge", Number.MAX_SAFE_INTEGER)).rejects.toMatchObject({
    code: "no_space",
    partial: { cursor: 0 },
  });
  await declare(store, "later");
  await expect(store.declareUploadLength("later", Number.MAX_SAFE_INTEGER)).rejects.toMatchObject({
    code: "no_space",
  });
  expect(readdirSync(store.dir).toSorted()).toEqual(["later.json", "later.part"]);
});

test("ENOSPC and EDQUOT in mid-chunk leave the offset exact; other faults are store_unavailable (P67)", async () => {
  for (const [errno, code] of [
    ["ENOSPC", "no_space"],
    ["EDQUOT", "no_space"],
    ["EFBIG", "file_too_large"],
    ["EIO", "store_unavailable"],
  ] as const) {
    let writes = 0;
    const files = watchedFiles(({ name, path }) => {
      if (/^handle\.writev?$/.test(name) && path.endsWith(".part") && (writes += 1) === 2)
        throw errnoError(errno);
    });
    const store = openStaging({}, files);
    await declare(store, "one", 400);
    const bytes = someBytes(400);
    const pieces = [0, 100, 200, 300].map((start) => bytes.subarray(start, start + 100));
    await expect(store.write(streamOf(...pieces), "one", 0), errno).rejects.toMatchObject({
      code,
      partial: { cursor: 100 },
      cause: { code: errno },
    });
    expect(await store.write(streamOf(bytes.subarray(100)), "one", 100)).toBe(400);
    expect(readFileSync(join(store.dir, "one.part")).equals(bytes)).toBe(true);
  }
});

test("with flush, bytes are flushed before they are acknowledged; without, never", async () => {
  for (const flush of [true, false]) {
    const operations: string[] = [];
    const files = watchedFiles(({ name, path }) => {
      if (path.endsWith(".part") && /write|sync/.test(name)) operations.push(name.replace("writev", "write"));
    });
    const store = openStaging({ flush }, files);
    await declare(store, "one", 4);
    await store
      .write(streamOf(someBytes(2), someBytes(2)), "one", 0)
      .then(() => operations.push("acknowledged"));
    expect(operations).toEqual([
      "handle.write",
      "handle.write",
      ...(flush ? ["handle.datasync"] : []),
      "acknowledged",
    ]);
  }
});

test("with flush, a cut is flushed before it is acknowledged", async () => {
  const operations: string[] = [];
  const files = watchedFiles(({ name, path }) => {
    if (path.endsWith(".part") && /truncate|sync/.test(name)) operations.push(name);
  });
  const store = openStaging({ flush: true }, files);
  await declare(store, "one", 4);
  await store.truncate("one", 0);
  expect(operations).toEqual(["handle.truncate", "handle.sync"]);
});

test("no call leaves a file open, however it ends", async () => {
  const filesBefore = openFiles();
  for (const failing of [
    "none",
    "handle.stat",
    "handle.write",
    "handle.datasync",
    "handle.truncate",
    "lstat",
  ]) {
    const files = watchedFiles(({ name, path }) => {
      if (name === failing && path.endsWith(".part")) throw errnoError("EIO");
    });
    const store = openStaging({ flush: true }, files);
    await declare(store, "one", 10);
    linkSync(join(store.dir, "one.part"), join(store.dir, "..", "published"));
    const calls = [
      () => store.write(streamOf(someBytes(1)), "one", 0),
      () => Promise.resolve(rmSync(join(store.dir, "..", "published"))),
      () => store.write(streamOf(someBytes(5)), "one", 0),
      () => store.write(streamOf(someBytes(5)), "one", 3),
      () => store.truncate("one", 20),
      () => store.truncate("one", 0),
      () => store.getUpload("one"),
      () => store.openStaged("nobody"),
      () => store.remove("one"),
    ];
    for (const call of calls) await call().catch(() => undefined);
  }
  expect(openFiles()).toBe(filesBefore);
});

test("after a failed flush the bytes of that write are not counted, so that the client sends them again", async () => {
  let isFailing = true;
  const files = watchedFiles(({ name }) => {
    if (name === "handle.datasync" && isFailing) throw errnoError("EIO");
  });
  const store = openStaging({ flush: true }, files);
  const bytes = someBytes(20);
  await declare(store, "one", 20);
  isFailing = false;
  await store.write(streamOf(bytes.subarray(0, 5)), "one", 0);
  isFailing = true;
  await expect(store.write(streamOf(bytes.subarray(5)), "one", 5)).rejects.toMatchObject({
    code: "store_unavailable",
    partial: { cursor: 5 },
  });
  expect(await store.stagedBytes("one")).toBe(5);
  isFailing = false;
  expect(await store.write(streamOf(bytes.subarray(5)), "one", 5)).toBe(20);
});

test("when the bytes of a failed flush cannot be taken back either, the error says both", async () => {
  const files = watchedFiles(({ name }) => {
    if (name === "handle.datasync" || name === "handle.truncate") throw errnoError("EIO");
  });
  const store = openStaging({ flush: true }, files);
  await declare(store, "one", 5);
  const error = (await store
    .write(streamOf(someBytes(5)), "one", 0)
    .catch((rejection: unknown) => rejection)) as Error;
  expect(error).toMatchObject({ code: "store_unavailable" });
  expect((error.cause as AggregateError).errors).toHaveLength(2);
});

test("the directory has its mode from the first moment", async () => {
  const modes: number[] = [];
  let dir = "";
  const files = watchedFiles(({ name }) => {
    if (name === "opendir") modes.push(statSync(dir).mode & 0o777);
  });
  const store = openStaging({}, files);
  dir = store.dir;
  await store.open();
  expect(modes).toEqual([0o700]);
});

test("a declaration is written aside, flushed, renamed, and its name flushed, before the upload is acknowledged", async () => {
  const operations: string[] = [];
  const files = watchedFiles(({ name, path }) => {
    if (/open$|writeFile|sync|rename/.test(name)) {
      const kind = /\.(part|json|tmp)(?= |$)/.exec(path)?.[1] ?? "directory";
      operations.push(`${name} ${kind}`);
    }
  });
  const store = openStaging({}, files);
  await declare(store, "one", 5);
  expect(operations).toEqual([
    "open part",
    "open tmp",
    "handle.writeFile tmp",
    "handle.sync tmp",
    "rename tmp",
    "open directory",
    "handle.sync directory",
  ]);
});

test("whatever fails while an upload is declared, nothing of it is left, and it can be declared again", async () => {
  for (const failing of ["handle.writeFile", "handle.sync", "rename"]) {
    let isFailing = true;
    const files = watchedFiles(({ name }) => {
      if (name === failing && isFailing) throw errnoError("ENOSPC");
    });
    const store = openStaging({}, files);
    await expect(declare(store, "one", 5), failing).rejects.toMatchObject({ code: "no_space" });
    expect(readdirSync(store.dir), failing).toEqual([]);
    isFailing = false;
    await declare(store, "one", 5);
    expect(await store.getUpload("one")).toMatchObject({ size: 5 });
  }
});

test("a declaration that cannot be replaced is still the old one", async () => {
  for (const failing of ["handle.writeFile", "handle.sync", "rename"]) {
    let isFailing = false;
    const files = watchedFiles(({ name }) => {
      if (name === failing && isFailing) throw errnoError("EIO");
    });
    const store = openStaging({}, files);
    await store.create(new Upload({ id: "one", offset: 0, metadata: { a: "b" } }));
    isFailing = true;
    await expect(store.declareUploadLength("one", 5), failing).rejects.toMatchObject({
      code: "store_unavailable",
    });
    expect(await store.getUpload("one")).toMatchObject({ metadata: { a: "b" } });
    expect((await store.getUpload("one")).sizeIsDeferred).toBe(true);
    expect(readdirSync(store.dir).toSorted()).toEqual(["one.json", "one.part"]);
  }
});

test("no error of the store tells where the directory is", async () => {
  const errors: unknown[] = [];
  for (const failing of [
    "open",
    "lstat",
    "unlink",
    "statfs",
    "mkdir",
    "opendir",
    "handle.write",
    "handle.stat",
  ]) {
    let isFailing = false;
    const files = watchedFiles(({ name, path }) => {
      if (name === failing && isFailing) throw Object.assign(errnoError("EIO"), { message: `EIO: ${path}` });
    });
    const dir = openStaging().dir;
    if (["mkdir", "opendir"].includes(failing)) isFailing = true;
    const store = new StagingStore({ dir }, files);
    const calls = [
      () => declare(store, "one", 5),
      () => store.write(streamOf(someBytes(5)), "one", 0),
      () => store.getUpload("one"),
      () => store.truncate("one", 0),
      () => store.remove("one"),
    ];
    for (const call of calls) {
      await call().catch((error: unknown) => errors.push(error));
      if (call === calls[0]) isFailing = true;
    }
  }
  expect(errors.length).toBeGreaterThan(8);
  for (const error of errors) {
    expect(error).toMatchObject({ code: "store_unavailable" });
    expect(JSON.stringify(error) + (error as Error).message).not.toContain("/");
  }
});
