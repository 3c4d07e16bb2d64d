import { readFileSync } from "node:fs";
import { open, rename, rm, truncate, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { describe, expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { expectSame } from "./support/same-bytes.ts";
import { answerOf, openDoor, refusalOf } from "./support/doors.ts";
import { serveFiles, type ServedFiles } from "./support/http.ts";
import { startFiles } from "./support/started-files.ts";
import { openDownload, openUpload } from "./support/uploads.ts";

const bytes = someBytes(100_000);

async function serveOne(
  content: Uint8Array = bytes,
): Promise<ServedFiles & { readonly url: string; readonly id: string }> {
  const served = await serveFiles();
  await writeFile(join(served.box, "data.csv"), content);
  const opened = await answerOf(
    served.door.call("file_transfer_open", { direction: "download", path: "data.csv" }),
  );
  return { ...served, url: String(opened["downloadUrl"]), id: String(opened["transferId"]) };
}

async function bodyOf(response: Response): Promise<Buffer> {
  return Buffer.from(await response.arrayBuffer());
}

describe("GET and HEAD", () => {
  test("the whole, with what is needed to check it", async () => {
    const { url } = await serveOne();
    const response = await fetch(url);
    expect(response.status).toBe(200);
    expectSame(await bodyOf(response), bytes);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "accept-ranges": "bytes",
      "content-length": "100000",
      "content-type": "text/csv",
      "content-disposition": "attachment; filename*=UTF-8''data.csv",
      "x-content-type-options": "nosniff",
      "repr-digest": `sha-256=:${Buffer.from(sha256(bytes), "hex").toString("base64")}:`,
      etag: expect.stringMatching(/^"[\w-]+"$/) as string,
    });
    const head = await fetch(url, { method: "HEAD" });
    expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "100000", ""]);
    expect(head.headers.get("etag")).toBe(response.headers.get("etag"));
  });

  test.each([
    ["bytes=0-0", 206, 0, 1],
    ["bytes=0-99999", 206, 0, 100_000],
    ["bytes=99999-", 206, 99_999, 100_000],
    ["bytes=-1", 206, 99_999, 100_000],
    ["bytes=-200000", 206, 0, 100_000],
    ["bytes=10-200000", 206, 10, 100_000],
    ["bytes=50-40", 200, 0, 100_000],
    ["bytes=0-1,5-6", 200, 0, 100_000],
    ["lines=1-2", 200, 0, 100_000],
    ["bytes=a-b", 200, 0, 100_000],
  ])("Range %s", async (range, status, start, end) => {
    const { url } = await serveOne();
    const response = await fetch(url, { headers: { range } });
    expect(response.status).toBe(status);
    expectSame(await bodyOf(response), bytes.subarray(start, end));
    const told = response.headers.get("content-range");
    expect(told).toBe(status === 206 ? `bytes ${start}-${end - 1}/100000` : null);
  });

  test.each(["bytes=100000-", "bytes=100000-100001", "bytes=-0"])(
    "Range %s is outside: 416 with the size",
    async (range) => {
      const { url } = await serveOne();
      const response = await fetch(url, { headers: { range } });
      expect([response.status, response.headers.get("content-range")]).toEqual([416, "bytes */100000"]);
      expect(await response.json()).toMatchObject({ code: "offset_mismatch", partial: { total: 100_000 } });
    },
  );

  test("P59: an empty file", async () => {
    const { url } = await serveOne(new Uint8Array());
    const response = await fetch(url);
    expect([response.status, response.headers.get("content-length"), await response.text()]).toEqual([
      200,
      "0",
      "",
    ]);
    expect((await fetch(url, { headers: { range: "bytes=0-" } })).status).toBe(416);
  });

  test("conditions: If-Match, If-None-Match, If-Range, by the strong validator", async () => {
    const { url } = await serveOne();
    const etag = (await fetch(url, { method: "HEAD" })).headers.get("etag") ?? "";
    const statusWith = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(url, { headers })).status;
    expect(await statusWith({ "if-none-match": etag })).toBe(304);
    expect(await statusWith({ "if-none-match": `W/${etag}` })).toBe(304);
    expect(await statusWith({ "if-none-match": '"other"' })).toBe(200);
    expect(await statusWith({ "if-match": etag })).toBe(200);
    expect(await statusWith({ "if-match": '"other"' })).toBe(412);
    expect(await statusWith({ range: "bytes=0-9", "if-range": etag })).toBe(206);
    expect(await statusWith({ range: "bytes=0-9", "if-range": '"other"' })).toBe(200);
    expect(await statusWith({ range: "bytes=0-9", "if-range": new Date().toUTCString() })).toBe(200);
    expect(await statusWith({ "if-modified-since": new Date(Date.now() + 60_000).toUTCString() })).toBe(304);
    expect(await statusWith({ "if-unmodified-since": new Date(0).toUTCString() })).toBe(412);
  });
});

/** Another content in the place of a file, with everything the same that can be made the same. */
const replacements: readonly (readonly [string, (path: string) => Promise<void>])[] = [
  [
    "written over, with the same size and times",
    async (path) => {
      const file = await open(path, "r+");
      const { atime, mtime } = await file.stat();
      await file.write(Buffer.alloc(1_000, "x"), 0, 1_000, 50_000);
      await file.close();
      await utimes(path, atime, mtime);
    },
  ],
  [
    "replaced by another file",
    async (path) => {
      await writeFile(`${path}.new`, Buffer.alloc(bytes.length, "x"));
      await rename(`${path}.new`, path);
    },
  ],
  [
    "deleted and made anew",
    async (path) => {
      await rm(path);
      await writeFile(path, Buffer.alloc(bytes.length, "x"));
    },
  ],
  ["deleted", (path) => rm(path)],
];

describe.each(replacements)("P63: a file that was %s", (_name, replace) => {
  test("reads by tool and by URL say source_changed", async () => {
    const { box, door, id, url } = await serveOne();
    await answerOf(door.call("file_transfer_read", { transferId: id, offset: 0 }));
    await replace(join(box, "data.csv"));
    const refusal = await refusalOf(door.call("file_transfer_read", { transferId: id, offset: 1_000 }));
    expect(refusal.code).toBe("source_changed");
    const response = await fetch(url);
    expect(response.status).toBe(410);
    expect(await response.json()).toMatchObject({ code: "source_changed" });
  });
});

test("P63: a stream that is under way when the file changes is broken off, and never ends whole with mixed bytes", async () => {
  const large = Buffer.alloc(32 * 1024 * 1024, "a");
  const { box, url } = await serveOne(large);
  const response = await fetch(url);
  const reader = response.body?.getReader();
  await reader?.read();
  const file = await open(join(box, "data.csv"), "r+");
  await file.write(Buffer.alloc(1_024, "b"), 0, 1_024, large.length - 2_048);
  await file.close();
  const drain = async (): Promise<number> => {
    let seen = 0;
    for (let next = await reader?.read(); next?.done === false; next = await reader?.read()) {
      seen += next.value.length;
      expect(next.value.includes(98)).toBe(false);
    }
    return seen;
  };
  await expect(drain()).rejects.toThrow();
});

describe("P63: reads by tool", () => {
  test.each([
    [0, 10, 10, false],
    [99_990, 100, 10, true],
    [100_000, 10, 0, true],
  ])("offset %i, length %i gives %i bytes", async (offset, length, given, eof) => {
    const { door, id } = await serveOne();
    const piece = await answerOf(door.call("file_transfer_read", { transferId: id, offset, length }));
    expect(piece).toMatchObject({ offset, length: given, total: 100_000, eof, nextOffset: offset + given });
    const data = Buffer.from(String(piece["data"]), "base64");
    expectSame(data, bytes.subarray(offset, offset + given));
    expect(piece["chunkSha256"]).toBe(sha256(data));
    expect(piece["sha256"]).toBe(sha256(bytes));
  });

  test.each([
    [-1, 10, "offset_mismatch"],
    [1.5, 10, "offset_mismatch"],
    [100_001, 10, "offset_mismatch"],
    [2 ** 53, 10, "offset_mismatch"],
    [0, 0, "chunk_too_large"],
    [0, -1, "chunk_too_large"],
    [0, 1.5, "chunk_too_large"],
    [0, 2 ** 40, "chunk_too_large"],
  ])("offset %d, length %d is refused: %s", async (offset, length, code) => {
    const { door, id } = await serveOne();
    const refusal = await refusalOf(door.call("file_transfer_read", { transferId: id, offset, length }));
    expect(refusal.code).toBe(code);
  });

  // CASES part 2, files: "directory download -> raw EISDIR; deleted file -> raw ENOENT".
  test.each(["missing.csv", ".", "sub", "sub/", "/etc/passwd", "..", "a\0b"])(
    "%j is no file to read",
    async (path) => {
      const { files, box } = await startFiles();
      const { mkdir } = await import("node:fs/promises");
      await mkdir(join(box, "sub"));
      const door = await openDoor(files);
      const refusal = await refusalOf(door.call("file_transfer_open", { direction: "download", path }));
      expect(refusal.code).toBe("path_not_allowed");
      expect(JSON.stringify(refusal)).not.toContain(box);
    },
  );

  test("the wrong direction is told", async () => {
    const { door, id } = await serveOne();
    const write = { transferId: id, offset: 0, data: "" };
    expect((await refusalOf(door.call("file_transfer_write", write))).code).toBe("not_active");
    const up = await openUpload(door);
    expect((await refusalOf(door.call("file_transfer_read", { transferId: up, offset: 0 }))).code).toBe(
      "not_active",
    );
  });
});

// CASES part 2, files: "every read at EOF rehashes the whole file".
test("the digest of a large file is computed in the background, once, and kept", async () => {
  const { files, box } = await startFiles();
  const large = Buffer.alloc(40 * 1024 * 1024, "a");
  await writeFile(join(box, "large.bin"), large);
  const door = await openDoor(files);
  const opened = await answerOf(
    door.call("file_transfer_open", { direction: "download", path: "large.bin" }),
  );
  expect(opened["sha256"]).toBeUndefined();
  const { transferId } = opened;
  const digest = sha256(large);
  const status = async () => answerOf(door.call("file_transfer_status", { transferId }));
  await expect.poll(async () => (await status())["sha256"], { timeout: 20_000 }).toBe(digest);
  const before = readBytes();
  for (let read = 0; read < 5; read += 1) {
    const piece = await answerOf(
      door.call("file_transfer_read", { transferId, offset: large.length, length: 10 }),
    );
    expect(piece).toMatchObject({ eof: true, sha256: digest });
  }
  // Another download of the same content knows it at once.
  const again = await openDownload(door, "large.bin");
  await expect
    .poll(async () => (await answerOf(door.call("file_transfer_status", { transferId: again })))["sha256"])
    .toBe(digest);
  expect(readBytes() - before).toBeLessThan(large.length / 4);
});

test.each(["file_transfer_status", "file_transfer_read"])(
  "a digest whose process has gone is computed by the next one, when %s asks",
  async (name) => {
    const { files, box, second, store } = await startFiles();
    // Large enough that no machine hashes it before the next line.
    await writeFile(join(box, "large.bin"), "");
    await truncate(join(box, "large.bin"), 512 * 1024 * 1024);
    const transferId = await openDownload(await openDoor(files), "large.bin");
    await files.close();
    expect((await store.get(transferId))?.data).not.toHaveProperty("sha256");
    const door = await openDoor(second().files);
    await answerOf(door.call(name, { transferId, offset: 0 }));
    await expect
      .poll(async () => (await store.get(transferId))?.data, { timeout: 20_000 })
      .toHaveProperty("sha256");
  },
);

/** What this process has read so far. */
function readBytes(): number {
  return Number(/rchar: (\d+)/.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}

test("a server opens published files for itself as safely as for its clients", async () => {
  const { box, files } = await startFiles();
  await writeFile(join(box, "data.csv"), bytes);
  await using file = await files.openFile({ root: "box", path: "data.csv" });
  expect([file.sizeBytes, await file.digest()]).toEqual([bytes.length, sha256(bytes)]);
  expectSame(Buffer.from(await new Response(file.stream(10, 500)).arrayBuffer()), bytes.subarray(10, 500));
  await expect(files.openFile({ root: "box", path: "../x" })).rejects.toMatchObject({
    code: "path_not_allowed",
  });
});
