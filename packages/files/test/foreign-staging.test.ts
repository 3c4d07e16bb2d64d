import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";

import { FileStore } from "@tus/file-store";
import { DataStore, ERRORS, Upload } from "@tus/server";
import { describe, expect, test } from "vitest";

import type { ForeignStagingStore } from "../src/index.ts";
import { sha256, someBytes } from "./disk/support/bytes.ts";
import { answerOf, openDoor, refusalOf } from "./support/doors.ts";
import { patch, serveFiles, tus } from "./support/http.ts";
import { makeDir, namesIn, startClock, startFiles } from "./support/started-files.ts";
import { expectSame } from "./support/same-bytes.ts";
import { openUpload, statusOf, write } from "./support/uploads.ts";

const bytes = someBytes(1_000);

/** The store for files of tus, which declares nothing: what it can do is said here. */
async function fileStore(): Promise<ForeignStagingStore> {
  const store = new FileStore({ directory: await makeDir() });
  return Object.assign(store, { abilities: { smallWrites: true } });
}

/**
 * A store with the rules of S3: parts of 5 MiB at least, the last one aside; a part is kept or not, as a whole; nothing
 * is read by range; nothing is cut off.
 */
class PartStore extends DataStore {
  static readonly partBytes = 5 * 1024 * 1024;
  readonly #uploads = new Map<string, { upload: Upload; parts: Buffer[] }>();

  constructor() {
    super();
    this.extensions = ["creation", "creation-with-upload", "creation-defer-length", "termination"];
  }

  get size(): number {
    return this.#uploads.size;
  }

  override async create(upload: Upload): Promise<Upload> {
    this.#uploads.set(upload.id, { upload, parts: [] });
    return upload;
  }

  override async getUpload(id: string): Promise<Upload> {
    const { upload, parts } = this.#find(id);
    const { size } = upload;
    return new Upload({ id, offset: lengthOf(parts), ...(size === undefined ? {} : { size }) });
  }

  override async declareUploadLength(id: string, size: number): Promise<void> {
    this.#find(id).upload.size = size;
  }

  override async write(stream: Readable, id: string, offset: number): Promise<number> {
    const { upload, parts } = this.#find(id);
    expect(offset).toBe(lengthOf(parts));
    let part: Buffer[] = [];
    for await (const piece of stream as AsyncIterable<Buffer>) {
      part.push(piece);
      if (lengthOf(part) < PartStore.partBytes) continue;
      parts.push(Buffer.concat(part));
      part = [];
    }
    const isLast = lengthOf(parts) + lengthOf(part) === upload.size;
    if (part.length > 0 && isLast) parts.push(Buffer.concat(part));
    return lengthOf(parts);
  }

  override async remove(id: string): Promise<void> {
    this.#find(id);
    this.#uploads.delete(id);
  }

  read(id: string): Readable {
    return Readable.from(this.#find(id).parts);
  }

  #find(id: string): { upload: Upload; parts: Buffer[] } {
    const found = this.#uploads.get(id);
    // As the stores of tus do: a plain object.
    // oxlint-disable-next-line typescript/only-throw-error
    if (found === undefined) throw ERRORS.FILE_NOT_FOUND;
    return found;
  }
}

function lengthOf(parts: readonly Uint8Array[]): number {
  return parts.reduce((sum, part) => sum + part.length, 0);
}

describe("the file store of tus as staging", () => {
  test("by tool, by TUS, and both; repeats are known, and the commit copies", async () => {
    const { door, box } = await serveFiles({ staging: await fileStore() });
    const id = await openUpload(door, { size: 1_000, sha256: sha256(bytes) });
    await answerOf(write(door, id, 0, bytes.subarray(0, 300)));
    expect(await answerOf(write(door, id, 0, bytes.subarray(0, 300)))).toMatchObject({ nextOffset: 300 });
    expect((await refusalOf(write(door, id, 0, Buffer.alloc(300)))).code).toBe("offset_mismatch");
    const url = String((await statusOf(door, id))["uploadUrl"]);
    expect((await patch(url, 300, bytes.subarray(300))).status).toBe(204);
    expect((await fetch(url, { method: "HEAD", headers: tus })).headers.get("upload-offset")).toBe("1000");
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
  });

  test("the checksum extension is not offered where nothing can be cut off", async () => {
    const { door, baseUrl } = await serveFiles({ staging: await fileStore() });
    const options = await fetch(baseUrl, { method: "OPTIONS" });
    expect(options.headers.get("tus-extension")).not.toContain("checksum");
    const id = await openUpload(door, { size: 1_000 });
    const url = String((await statusOf(door, id))["uploadUrl"]);
    const response = await patch(url, 0, bytes, { "upload-checksum": "sha1 2jmj7l5rSw0yVb/vlWAYkK/YBwk=" });
    expect(response.status).toBe(400);
    expect(await statusOf(door, id)).toMatchObject({ offset: 0 });
  });

  test("an abort and a sweep delete what was staged", async () => {
    const clock = startClock();
    const staging = await fileStore();
    const { directory } = staging as unknown as { directory: string };
    const { files } = await startFiles({ staging, now: clock.now, idleMs: 60_000 });
    const door = await openDoor(files);
    const aborted = await openUpload(door, { path: "a" });
    await openUpload(door, { path: "b" });
    expect((await namesIn(directory)).length).toBeGreaterThan(0);
    await answerOf(door.call("file_transfer_abort", { transferId: aborted }));
    clock.advance(60_001);
    await files.sweep();
    expect(await namesIn(directory)).toEqual([]);
  });
});

describe("a store with the rules of S3 as staging", () => {
  test("the write tool answers with the URL that takes the bytes, and stores nothing", async () => {
    const { door } = await serveFiles({ staging: new PartStore() });
    const id = await openUpload(door, { size: 1_000 });
    const opened = await statusOf(door, id);
    expect(opened["chunkBytes"]).toBeUndefined();
    const refusal = await refusalOf(write(door, id, 0, bytes));
    expect(refusal).toMatchObject({ code: "invalid_request", partial: { uploadUrl: opened["uploadUrl"] } });
    expect(await statusOf(door, id)).toMatchObject({ offset: 0 });
    // Only to whoever may write.
    expect((await refusalOf(write(door, "nobody", 0, bytes))).code).toBe("unknown_transfer");
  });

  test("a PATCH of several parts arrives; an offset is never more than whole parts", async () => {
    const store = new PartStore();
    const { door, box } = await serveFiles({ staging: store });
    const large = Buffer.alloc(12 * 1024 * 1024, "x");
    const id = await openUpload(door, { size: large.length, sha256: sha256(large) });
    const url = String((await statusOf(door, id))["uploadUrl"]);
    // 7 MiB: one part is kept, and the rest is sent again.
    const first = await patch(url, 0, large.subarray(0, 7 * 1024 * 1024));
    const kept = Number(first.headers.get("upload-offset"));
    expect(kept).toBeGreaterThanOrEqual(PartStore.partBytes);
    expect(kept).toBeLessThanOrEqual(7 * 1024 * 1024);
    expect(await statusOf(door, id)).toMatchObject({ offset: kept });
    expect((await patch(url, kept, large.subarray(kept))).status).toBe(204);
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), large);
    expect(store.size).toBe(0);
  });

  test("a wrong sha256 publishes nothing and keeps the bytes", async () => {
    const { door, box } = await serveFiles({ staging: new PartStore() });
    const id = await openUpload(door, { size: 1_000 });
    await patch(String((await statusOf(door, id))["uploadUrl"]), 0, bytes);
    const refusal = await refusalOf(
      door.call("file_transfer_commit", { transferId: id, sha256: sha256("other") }),
    );
    expect(refusal.code).toBe("checksum_mismatch");
    expect(await namesIn(box)).toEqual([]);
    await answerOf(door.call("file_transfer_commit", { transferId: id, sha256: sha256(bytes) }));
  });
});

test("a store that breaks in the middle is a coded error, not a plain object, and nothing is lost", async () => {
  const staging = new PartStore();
  const started = await serveFiles({ staging });
  const id = await openUpload(started.door, { size: 1_000 });
  const url = String((await statusOf(started.door, id))["uploadUrl"]);
  const write_ = staging.write.bind(staging);
  staging.write = async () => {
    // oxlint-disable-next-line typescript/only-throw-error
    throw ERRORS.FILE_WRITE_ERROR;
  };
  const response = await patch(url, 0, bytes);
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ code: "store_unavailable", retryable: true });
  expect(started.errors.splice(0)).toHaveLength(1);
  staging.write = write_;
  expect((await patch(url, 0, bytes)).status).toBe(204);
});
