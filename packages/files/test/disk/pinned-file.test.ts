import type { EventEmitter } from "node:events";
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { DigestCache } from "../../src/disk/digest-cache.ts";
import { type DiskFiles, diskFiles } from "../../src/disk/disk-files.ts";
import { PinnedFile } from "../../src/disk/pinned-file.ts";
import { collect, sha256, someBytes } from "./support/bytes.ts";
import { errnoError, watchedFiles } from "./support/failing-files.ts";
import { openPlayground } from "./support/roots.ts";
import { tempDir } from "./support/temp-dir.ts";

const changed = { code: "source_changed" };

async function pin(bytes: Uint8Array): Promise<{ file: PinnedFile; path: string }> {
  const path = join(tempDir(), "source.bin");
  writeFileSync(path, bytes);
  return { file: await PinnedFile.open(await open(path, "r")), path };
}

/** Opens a file, and tells when it is closed: a handle is an emitter, which its type does not say. */
async function openWatched(
  path: string,
  onClosed: () => void,
  files: DiskFiles = diskFiles,
): Promise<FileHandle> {
  const handle = await files.open(path, "r");
  (handle as unknown as EventEmitter).once("close", onClosed);
  return handle;
}

test("a read gives the bytes from an offset, fewer at the end, and none at the end (P63)", async () => {
  const bytes = someBytes(1000);
  const { file } = await pin(bytes);
  for (const [offset, length, end] of [
    [0, 1000, 1000],
    [0, 1, 1],
    [10, 100, 110],
    [999, 1, 1000],
    [990, 100, 1000],
    [1000, 100, 1000],
    [0, 0, 0],
    [0, Number.MAX_SAFE_INTEGER, 1000],
  ] as const) {
    const read = await file.read(offset, length);
    expect(Buffer.from(read).equals(bytes.subarray(offset, end)), `${offset}+${length}`).toBe(true);
  }
  await file.close();
});

test("an offset that is none is refused with the size of the file (P63)", async () => {
  const { file } = await pin(someBytes(10));
  for (const offset of [
    -1,
    0.5,
    11,
    2 ** 31,
    2 ** 53,
    1e300,
    Infinity,
    -Infinity,
    Number.NaN,
    "1",
    null,
    undefined,
  ]) {
    const error = { code: "offset_mismatch", param: "offset", partial: { cursor: 10 } };
    await expect(file.read(offset as number, 1), String(offset)).rejects.toMatchObject(error);
    if (offset !== undefined)
      expect(() => file.stream(offset as number), String(offset)).toThrow(expect.objectContaining(error));
  }
  for (const length of [-1, 0.5, Number.NaN, Infinity]) {
    await expect(file.read(0, length), String(length)).rejects.toThrow(RangeError);
  }
  expect(() => file.stream(5, 4)).toThrow(RangeError);
  expect(() => file.stream(0, 11)).toThrow(expect.objectContaining({ code: "offset_mismatch" }));
  await file.close();
});

test("a stream gives a range, also an empty one, in pieces (P59, P63)", async () => {
  const bytes = someBytes(700_001);
  const { file } = await pin(bytes);
  for (const [start, end] of [
    [undefined, undefined],
    [0, 1],
    [0, 262_144],
    [1, 262_146],
    [700_000, 700_001],
    [700_001, 700_001],
    [5, 5],
  ] as const) {
    const read = await collect(file.stream(start, end));
    expect(read.equals(bytes.subarray(start, end)), `${start}-${end}`).toBe(true);
  }
  await file.close();
});

/** Each makes other content under the same name; those that can, keep the size and the modification time. */
const changes: Record<string, (path: string) => void> = {
  "appended to": (path) => appendFileSync(path, "x"),
  "cut off": (path) => truncateSync(path, 5),
  "rewritten in place, same size and time": (path) => {
    const { atime, mtime } = statSync(path);
    writeFileSync(path, Buffer.alloc(600_000, "y"));
    utimesSync(path, atime, mtime);
  },
  "replaced by another file, same size and time": (path) => {
    const { atime, mtime } = statSync(path);
    writeFileSync(`${path}.new`, Buffer.alloc(600_000, "y"));
    utimesSync(`${path}.new`, atime, mtime);
    renameSync(`${path}.new`, path);
  },
  "deleted and made again, same size and time": (path) => {
    const { atime, mtime } = statSync(path);
    rmSync(path);
    writeFileSync(path, Buffer.alloc(600_000, "y"));
    utimesSync(path, atime, mtime);
  },
  deleted: (path) => rmSync(path),
};

for (const [how, change] of Object.entries(changes)) {
  test(`a file that is ${how} is source_changed for reads, digests and the next opening (P63)`, async () => {
    const { roots, inside } = openPlayground();
    const path = join(inside, "source.bin");
    writeFileSync(path, Buffer.alloc(600_000, "x"));
    const location = { root: "files", path: "source.bin" };
    await using file = await roots.openSource(location);
    expect((await file.read(0, 10)).length).toBe(10);
    // Unchanged, it opens again.
    await (await roots.openSource(location, { pin: file.pin })).close();
    change(path);
    await expect(file.read(0, 10)).rejects.toMatchObject(changed);
    await expect(file.digest()).rejects.toMatchObject(changed);
    await expect(roots.openSource(location, { pin: file.pin })).rejects.toMatchObject(changed);
  });

  test(`a stream of a file that is ${how} meanwhile is broken off, without one byte of the new content (P63)`, async () => {
    const { file, path } = await pin(Buffer.alloc(600_000, "x"));
    const reader = file.stream().getReader();
    const first = await reader.read();
    expect(first.value?.length).toBeLessThan(600_000);
    change(path);
    const rest: Uint8Array[] = [];
    const reading = (async () => {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        rest.push(value);
      }
    })();
    await expect(reading).rejects.toMatchObject(changed);
    expect(Buffer.concat(rest).includes("y")).toBe(false);
    await file.close();
  });
}

test("a source that is replaced by a link, a directory or another kind of file is source_changed, not a refused path (P63)", async () => {
  for (const replace of [
    (path: string) => symlinkSync("elsewhere", path),
    (path: string) => mkdirSync(path),
  ]) {
    const { roots, inside } = openPlayground();
    const path = join(inside, "source.bin");
    writeFileSync(path, "x");
    const location = { root: "files", path: "source.bin" };
    await using source = await roots.openSource(location);
    rmSync(path);
    replace(path);
    await expect(roots.openSource(location, { pin: source.pin })).rejects.toMatchObject(changed);
  }
});

test("a pin is JSON, and its validator is equal for an equal pin only", async () => {
  const { roots, inside } = openPlayground();
  writeFileSync(join(inside, "a"), "x");
  writeFileSync(join(inside, "b"), "x");
  const a = await roots.openSource({ root: "files", path: "a" });
  const again = await roots.openSource(
    { root: "files", path: "a" },
    { pin: JSON.parse(JSON.stringify(a.pin)) as typeof a.pin },
  );
  const b = await roots.openSource({ root: "files", path: "b" });
  expect(again.pin).toEqual(a.pin);
  expect(again.validator).toBe(a.validator);
  expect(b.validator).not.toBe(a.validator);
  expect(a.validator).toMatch(/^[\w-]{32}$/);
  expect(a.modifiedAtMs).toBe(Math.floor(statSync(join(inside, "a")).mtimeMs));
  for (const file of [a, again, b]) await file.close();
});

test("a file that was changed just now is pinned only once a further change would show in its times", async () => {
  const path = join(tempDir(), "busy.bin");
  for (let round = 0; round < 20; round += 1) {
    writeFileSync(path, "before");
    const file = await PinnedFile.open(await open(path, "r"));
    expect(Date.now() - Number(BigInt(file.pin.ctimeNs) / 1_000_000n)).toBeGreaterThanOrEqual(20);
    writeFileSync(path, "after!");
    await expect(file.read(0, 6)).rejects.toMatchObject(changed);
    await file.close();
  }
});

test("the digest is computed once per pin, however many ask, in however many openings", async () => {
  let reads = 0;
  const files = watchedFiles(({ name }) => {
    if (name === "handle.read") reads += 1;
  });
  const { roots, inside } = openPlayground({}, files);
  const bytes = someBytes(600_000);
  writeFileSync(join(inside, "source.bin"), bytes);
  const location = { root: "files", path: "source.bin" };
  const first = await roots.openSource(location);
  const second = await roots.openSource(location);
  const asked = Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? first : second).digest());
  expect(new Set(await Promise.all(asked))).toEqual(new Set([sha256(bytes)]));
  const readsOfOne = reads;
  expect(readsOfOne).toBeLessThanOrEqual(4);
  for (let again = 0; again < 50; again += 1) {
    await using file = await roots.openSource(location);
    expect(await file.digest()).toBe(sha256(bytes));
  }
  expect(reads).toBe(readsOfOne);
  await first.close();
  await second.close();
});

test("the digest of nothing is that of no bytes", async () => {
  const { file } = await pin(Buffer.alloc(0));
  expect(await file.digest()).toBe(sha256(""));
  expect((await collect(file.stream())).length).toBe(0);
  await file.close();
});

test("progress of a digest rises to the size, and a listener that throws ends nothing", async () => {
  const { file } = await pin(someBytes(1_000_000));
  const told: number[] = [];
  const reported: unknown[] = [];
  Object.assign(globalThis, { reportError: (error: unknown) => reported.push(error) });
  try {
    const onProgress = (doneBytes: number, sizeBytes: number): void => {
      expect(sizeBytes).toBe(1_000_000);
      told.push(doneBytes);
    };
    const throwing = file.digest({
      onProgress: () => {
        throw new Error("listener");
      },
    });
    await Promise.all([throwing, file.digest({ onProgress })]);
  } finally {
    Reflect.deleteProperty(globalThis, "reportError");
  }
  expect(told.at(-1)).toBe(1_000_000);
  expect(told).toEqual(told.toSorted((a, b) => a - b));
  expect(told.length).toBeGreaterThan(2);
  expect(reported).toHaveLength(told.length);
  await file.close();
});

test("a wait for a digest that is given up ends at once; the computation ends with the last wait", async () => {
  let reads = 0;
  const gate = Promise.withResolvers<void>();
  const files = watchedFiles(async ({ name }) => {
    if (name === "handle.read" && (reads += 1) === 2) await gate.promise;
  });
  const path = join(tempDir(), "source.bin");
  const bytes = someBytes(2_000_000);
  writeFileSync(path, bytes);
  const file = await PinnedFile.open(await files.open(path, "r"));
  const first = new AbortController();
  const second = new AbortController();
  const waiting = [file.digest({ signal: first.signal }), file.digest({ signal: second.signal })];
  first.abort(new Error("first left"));
  await expect(waiting[0]).rejects.toThrow("first left");
  second.abort(new Error("second left"));
  await expect(waiting[1]).rejects.toThrow("second left");
  gate.resolve();
  // It ended after the read that was going on; whoever asks next gets a new one.
  expect(await file.digest()).toBe(sha256(bytes));
  expect(reads).toBeLessThanOrEqual(2 + 9);
  await expect(file.digest({ signal: AbortSignal.abort(new Error("too late")) })).rejects.toThrow("too late");
  await file.close();
});

test("a digest whose first asker has left goes on for the second", async () => {
  const { file } = await pin(someBytes(2_000_000));
  const leaving = new AbortController();
  const first = file.digest({ signal: leaving.signal });
  const second = file.digest();
  leaving.abort(new Error("left"));
  await expect(first).rejects.toThrow("left");
  expect(await second).toMatch(/^[0-9a-f]{64}$/);
  await file.close();
});

test("a digest that failed is not kept", async () => {
  let isFailing = true;
  const files = watchedFiles(({ name }) => {
    if (name === "handle.read" && isFailing) throw errnoError("EIO");
  });
  const path = join(tempDir(), "source.bin");
  writeFileSync(path, "x");
  const file = await PinnedFile.open(await files.open(path, "r"));
  await expect(file.digest()).rejects.toMatchObject({ code: "store_unavailable" });
  await expect(file.read(0, 1)).rejects.toMatchObject({ code: "store_unavailable" });
  await expect(collect(file.stream())).rejects.toMatchObject({ code: "store_unavailable" });
  isFailing = false;
  expect(await file.digest()).toBe(sha256("x"));
  await file.close();
});

test("a cache of digests keeps the last thousand", async () => {
  const digests = new DigestCache();
  let computed = 0;
  const ask = (key: number): Promise<string> =>
    digests.digest(String(key), 1, async () => {
      computed += 1;
      return `digest ${key}`;
    });
  for (let key = 0; key < 1001; key += 1) await ask(key);
  // 0 was forgotten; 1, which was used since, is not the next to go.
  await ask(1);
  expect(computed).toBe(1001);
  expect(await ask(0)).toBe("digest 0");
  expect(computed).toBe(1002);
  await ask(1);
  expect(computed).toBe(1002);
});

test("close() waits for streams and digests that go on, and refuses new ones", async () => {
  const bytes = someBytes(900_000);
  const { file } = await pin(bytes);
  const stream = file.stream();
  const cancelled = file.stream();
  const digest = file.digest();
  await file.close();
  await file.close();
  expect(() => file.stream()).toThrow(TypeError);
  await expect(file.read(0, 1)).rejects.toThrow(TypeError);
  expect((await collect(stream)).equals(bytes)).toBe(true);
  expect(await digest).toBe(sha256(bytes));
  await cancelled.cancel();
  await cancelled.cancel();
});

test("nothing is read before somebody asks; a stream that is left then closes the descriptor", async () => {
  const operations: string[] = [];
  const path = join(tempDir(), "source.bin");
  writeFileSync(path, someBytes(600_000));
  const files = watchedFiles(({ name }) => {
    operations.push(name);
  });
  const handle = await openWatched(path, () => operations.push("closed"), files);
  const file = await PinnedFile.open(handle);
  operations.length = 0;
  const stream = file.stream();
  await file.close();
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  expect(operations).toEqual([]);
  await stream.cancel();
  expect(operations).toEqual(["closed"]);
});

test("a stream reads into the memory that its reader lends, however little, and hands out no byte of a changed file", async () => {
  const bytes = someBytes(300_000);
  const path = join(tempDir(), "source.bin");
  writeFileSync(path, bytes);
  const targets: number[] = [];
  const files = watchedFiles(({ name, given }) => {
    if (name === "handle.read") targets.push((given[0] as Uint8Array).buffer.byteLength);
  });
  const file = await PinnedFile.open(await files.open(path, "r"));
  for (const size of [1_000, 131_072, 1_000_000]) {
    const reader = file.stream(10).getReader({ mode: "byob" });
    const pieces: Uint8Array[] = [];
    let lent = new Uint8Array(size);
    for (;;) {
      const { done, value } = await reader.read(lent);
      if (done) break;
      expect(value.buffer.byteLength).toBe(size);
      pieces.push(Uint8Array.from(value));
      lent = new Uint8Array(value.buffer);
    }
    expect(Buffer.concat(pieces).equals(bytes.subarray(10)), String(size)).toBe(true);
    // No other memory was used.
    expect(new Set(targets.splice(0))).toEqual(new Set([size]));
  }
  const empty = file.stream(5, 5).getReader({ mode: "byob" });
  expect((await empty.read(new Uint8Array(10))).done).toBe(true);
  const broken = file.stream().getReader({ mode: "byob" });
  await broken.read(new Uint8Array(100));
  writeFileSync(path, someBytes(300_000));
  await expect(broken.read(new Uint8Array(100))).rejects.toMatchObject(changed);
  await expect(collect(file.stream(5, 5))).rejects.toMatchObject(changed);
  await file.close();
});

test("the descriptor is closed when the last use ends, whatever the use was", async () => {
  const closed: string[] = [];
  const path = join(tempDir(), "source.bin");
  writeFileSync(path, someBytes(600_000));
  const openPinned = async (name: string): Promise<PinnedFile> => {
    return PinnedFile.open(await openWatched(path, () => closed.push(name)));
  };
  const whole = await openPinned("read to the end");
  const stream = whole.stream();
  await whole.close();
  expect(closed).toEqual([]);
  await collect(stream);
  const left = await openPinned("cancelled");
  const reader = left.stream().getReader();
  await reader.read();
  await left.close();
  await reader.cancel();
  const broken = await openPinned("broken off");
  const breaking = broken.stream();
  await broken.close();
  writeFileSync(path, "other");
  await expect(collect(breaking)).rejects.toMatchObject(changed);
  const refused = await openWatched(path, () => closed.push("refused"));
  await expect(PinnedFile.open(refused, { pin: whole.pin })).rejects.toMatchObject(changed);
  expect(closed).toEqual(["read to the end", "cancelled", "broken off", "refused"]);
});
