import { readFile } from "node:fs/promises";
import { join } from "node:path";

import { MemoryTaskStore, TaskWriter } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { TransferLocks } from "../src/transfer-locks.ts";
import { TransferWriters } from "../src/transfer-writers.ts";
import { sha256, someBytes } from "./disk/support/bytes.ts";
import { expectSame } from "./support/same-bytes.ts";
import { answerOf, openDoor, refusalOf, type Door } from "./support/doors.ts";
import { patch, serveFiles, tus } from "./support/http.ts";
import { startFiles } from "./support/started-files.ts";
import { openUpload, statusOf, write } from "./support/uploads.ts";

const bytes = someBytes(100_000);

/** A PATCH that has sent some bytes and is held open. */
async function heldPatch(
  url: string,
  first: Uint8Array,
  staged: () => Promise<unknown>,
): Promise<{ send: (more: Uint8Array) => void; end: () => void; response: Promise<Response> }> {
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      stream = controller;
      controller.enqueue(first);
    },
  });
  const response = patch(url, 0, body);
  response.catch(() => undefined);
  await expect.poll(staged, { timeout: 10_000 }).toBe(first.length);
  return { response, send: (more) => stream?.enqueue(more), end: () => stream?.close() };
}

async function openUrl(door: Door): Promise<{ id: string; url: string; offset: () => Promise<unknown> }> {
  const id = await openUpload(door, { size: bytes.length, sha256: sha256(bytes) });
  const url = String((await statusOf(door, id))["uploadUrl"]);
  return { id, url, offset: async () => (await statusOf(door, id))["offset"] };
}

// CASES part 2, files: "two concurrent writes at the same offset both succeed".
describe("P56: two writers", () => {
  test("20 chunks at one offset at once: one is stored, the others are repeats or busy, and the file is whole", async () => {
    const { files, box, second } = await startFiles();
    const doors = [await openDoor(files), await openDoor(files), await openDoor(second().files)];
    const [door] = doors;
    if (door === undefined) throw new Error("There is no door.");
    const id = await openUpload(door, { size: 16, sha256: sha256(bytes.subarray(0, 16)) });
    for (let offset = 0; offset < 16; offset += 4) {
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          write(doors[index % 3] ?? door, id, offset, bytes.subarray(offset, offset + 4)),
        ),
      );
      expect(answers.some(({ isError }) => !isError)).toBe(true);
      for (const { isError, structured } of answers) {
        if (isError) expect(structured["error"]).toMatchObject({ code: "transfer_busy", retryable: true });
        else expect(structured).toMatchObject({ nextOffset: offset + 4 });
      }
      expect(await statusOf(door, id)).toMatchObject({ offset: offset + 4 });
    }
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes.subarray(0, 16));
  });

  test("other bytes at the same offset at once: one wins, the rest are refused", async () => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 4 });
    const answers = await Promise.all(
      [1, 2, 3, 4, 5].map((fill) => write(door, id, 0, Buffer.alloc(4, fill))),
    );
    expect(answers.filter(({ isError }) => !isError)).toHaveLength(1);
    expect(await statusOf(door, id)).toMatchObject({ offset: 4 });
  });

  test("a tool gets busy at once beside a PATCH, and does not end it; the status waits for nobody", async () => {
    const { door, box } = await serveFiles({ staleWriterMs: 0 });
    const { id, url, offset } = await openUrl(door);
    const held = await heldPatch(url, bytes.subarray(0, 50_000), offset);
    const calls = [
      write(door, id, 50_000, bytes.subarray(50_000)),
      door.call("file_transfer_commit", { transferId: id }),
      door.call("file_transfer_abort", { transferId: id }),
    ];
    for (const call of calls)
      expect(await refusalOf(call)).toMatchObject({ code: "transfer_busy", retryable: true });
    expect((await fetch(url, { method: "HEAD", headers: tus })).headers.get("upload-offset")).toBe("50000");
    held.send(bytes.subarray(50_000));
    held.end();
    expect((await held.response).status).toBe(204);
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
  });

  test("a PATCH gets 423 while the last byte of another is young", async () => {
    const { door } = await serveFiles({ staleWriterMs: 60_000 });
    const { url, offset } = await openUrl(door);
    const held = await heldPatch(url, bytes.subarray(0, 10), offset);
    for (const method of ["PATCH", "DELETE"]) {
      const response =
        method === "PATCH"
          ? await patch(url, 10, bytes.subarray(10, 20))
          : await fetch(url, { method, headers: tus });
      expect(response.status).toBe(423);
      expect(await response.json()).toMatchObject({ code: "transfer_busy", retryable: true });
    }
    held.send(bytes.subarray(10));
    held.end();
    expect((await held.response).status).toBe(204);
  });

  test("a PATCH that has not moved for a while makes way: what it sent is kept, and the next goes on there", async () => {
    const { door, box } = await serveFiles({ staleWriterMs: 0 });
    const { id, url, offset } = await openUrl(door);
    const held = await heldPatch(url, bytes.subarray(0, 10_000), offset);
    const next = await patch(url, 10_000, bytes.subarray(10_000));
    expect(next.status).toBe(204);
    // The one that was stopped learns how far it came, or that its connection is gone.
    const first = await held.response.then(
      (response) => response.headers.get("upload-offset") ?? String(response.status),
      () => "gone",
    );
    expect(["10000", "gone"]).toContain(first);
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
  });

  test("a sweep leaves a live writer alone, even beyond the cap", async () => {
    let nowMs = Date.UTC(2026, 6, 28);
    const store = new MemoryTaskStore({ now: () => nowMs });
    const { door, files, box } = await serveFiles({
      store,
      now: () => nowMs,
      monotonicMs: () => nowMs,
      idleMs: 60_000,
      maxLifetimeMs: 60_000,
      leaseMs: 15_000,
    });
    const { id, url, offset } = await openUrl(door);
    const held = await heldPatch(url, bytes.subarray(0, 1_000), offset);
    for (let sent = 1_000; sent < bytes.length; sent += 1_000) {
      nowMs += 10_000;
      held.send(bytes.subarray(sent, sent + 1_000));
      await expect.poll(offset, { timeout: 10_000 }).toBe(sent + 1_000);
      await files.sweep();
    }
    held.end();
    expect((await held.response).status).toBe(204);
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
    expectSame(await readFile(join(box, "file.bin")), bytes);
  });
});

test("a writer that ended beyond the cap leaves time for a commit; chunk upon chunk adds none", async () => {
  let nowMs = Date.UTC(2026, 6, 28);
  const store = new MemoryTaskStore({ now: () => nowMs });
  const options = { idleMs: 60_000, maxLifetimeMs: 60_000, leaseMs: 15_000 };
  const { door } = await serveFiles({ store, now: () => nowMs, monotonicMs: () => nowMs, ...options });
  const { id, url, offset } = await openUrl(door);
  const held = await heldPatch(url, bytes.subarray(0, 1_000), offset);
  for (let sent = 1_000; sent < 8_000; sent += 1_000) {
    nowMs += 10_000;
    held.send(bytes.subarray(sent, sent + 1_000));
    await expect.poll(offset, { timeout: 10_000 }).toBe(sent + 1_000);
  }
  held.end();
  expect((await held.response).status).toBe(204);
  const expiry = (await statusOf(door, id))["expiresAt"];
  expect(Date.parse(String(expiry))).toBeGreaterThan(nowMs);
  nowMs += 5_000;
  await answerOf(write(door, id, 8_000, bytes.subarray(8_000, 9_000)));
  expect((await statusOf(door, id))["expiresAt"]).toBe(expiry);
});

describe("the lease on the record, among instances", () => {
  /** Two stores-alike of two processes: nothing but the data is shared. */
  class SharedStore extends MemoryTaskStore {
    override readonly exclusive = undefined as never;
  }

  test("one writer among two instances; the other one is told to wait", async () => {
    const served = await serveFiles({ store: new SharedStore() });
    const { id, url, offset } = await openUrl(served.door);
    const held = await heldPatch(url, bytes.subarray(0, 1_000), offset);
    const other = served.second();
    const door = await openDoor(other.files);
    expect((await refusalOf(write(door, id, 1_000, bytes.subarray(1_000, 2_000)))).code).toBe(
      "transfer_busy",
    );
    const request = new Request(url, { method: "DELETE", headers: tus });
    expect((await other.files.fetch(request)).status).toBe(423);
    expect(await statusOf(door, id)).toMatchObject({ offset: 1_000 });
    held.send(bytes.subarray(1_000));
    held.end();
    expect((await held.response).status).toBe(204);
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
  });

  test("a writer that is gone is taken over when its lease has been seen unchanged for its whole duration", async () => {
    let monotonic = 0;
    const store = new SharedStore();
    const served = await serveFiles({ store, leaseMs: 15_000 });
    const { id, url, offset } = await openUrl(served.door);
    const held = await heldPatch(url, bytes.subarray(0, 1_000), offset);
    // Dead for all that the other one can see: nothing moves any more.
    const other = served.second({ monotonicMs: () => monotonic });
    const door = await openDoor(other.files);
    const next = () => write(door, id, 1_000, bytes.subarray(1_000, 2_000));
    expect((await refusalOf(next())).code).toBe("transfer_busy");
    monotonic = 14_999;
    expect((await refusalOf(next())).code).toBe("transfer_busy");
    monotonic = 15_000;
    const taken = await next();
    expect(taken.isError ? taken.structured["error"] : taken.structured).toMatchObject({ nextOffset: 2_000 });
    held.end();
    const late = await held.response;
    expect(late.status).toBe(423);
  });

  test("on a store of one process the lease of an owner that is gone is dead at once", async () => {
    const store = new MemoryTaskStore();
    const first = await startFiles({ store });
    const door = await openDoor(first.files);
    const id = await openUpload(door, { size: 10 });
    const record = await store.get(id);
    if (record === undefined) throw new Error("There is no record.");
    await store.update(
      id,
      { lease: { owner: "a process that died", token: "t", durationMs: 15_000 } },
      record.version,
    );
    expect(await answerOf(write(door, id, 0, bytes.subarray(0, 10)))).toMatchObject({ nextOffset: 10 });
  });
});

test("a writer ends only when what it stages has settled, however it ends", async () => {
  const store = new MemoryTaskStore();
  const locks = new TransferLocks({ staleWriterMs: 0, stopGraceMs: 10, monotonicMs: () => 0 });
  const clock = { now: Date.now, random: Math.random };
  const writers = new TransferWriters({
    store,
    locks,
    writer: new TaskWriter({ store, kind: "transfer", ...clock }, () => undefined),
    owner: "me",
    monotonicMs: () => 0,
    randomId: () => crypto.randomUUID(),
    now: Date.now,
    idleMs: 60_000,
    maxLifetimeMs: 60_000,
    leaseMs: 15_000,
  });
  const started = await startFiles({ store });
  const id = await openUpload(await openDoor(started.files));
  const writer = await writers.take(id, "tool", () => undefined);
  const staged = Promise.withResolvers<number>();
  writer.stage(staged.promise).catch(() => undefined);
  let ended = false;
  const ending = writer.end().then(() => {
    ended = true;
  });
  // Every turn that an end without waiting could take.
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
  expect([ended, locks.isHeld(id)]).toEqual([false, true]);
  staged.reject(new Error("the disk is gone"));
  await ending;
  expect(locks.isHeld(id)).toBe(false);
});

describe("the lock within a process", () => {
  const options = { staleWriterMs: 5_000, stopGraceMs: 1_000 };

  test("it is released once, and only by its holder", async () => {
    const locks = new TransferLocks({ ...options, monotonicMs: () => 0 });
    const first = locks.take("a");
    expect(() => locks.take("a")).toThrow(expect.objectContaining({ code: "transfer_busy" }));
    locks.take("b").release();
    first.release();
    const second = locks.take("a");
    first.release();
    expect(locks.isHeld("a")).toBe(true);
    second.release();
    expect(locks.size).toBe(0);
  });

  test("a request stops a holder whose last byte is old, and waits until it is released", async () => {
    let nowMs = 0;
    const locks = new TransferLocks({ ...options, monotonicMs: () => nowMs });
    const holder = locks.take("a");
    nowMs = 4_000;
    holder.touch();
    nowMs = 8_999;
    await expect(locks.takeOver("a")).rejects.toMatchObject({ code: "transfer_busy" });
    expect(holder.stopped.aborted).toBe(false);
    nowMs = 9_000;
    let taken = false;
    const taking = locks.takeOver("a").then((lock) => {
      taken = true;
      return lock;
    });
    await Promise.resolve();
    expect(holder.stopped.aborted).toBe(true);
    expect(taken).toBe(false);
    holder.release();
    (await taking).release();
    expect(locks.size).toBe(0);
  });

  test("a holder that does not stop in time keeps its right", async () => {
    const locks = new TransferLocks({ staleWriterMs: 0, stopGraceMs: 10, monotonicMs: () => 0 });
    const holder = locks.take("a");
    await expect(locks.takeOver("a")).rejects.toMatchObject({ code: "transfer_busy" });
    expect(locks.isHeld("a")).toBe(true);
    holder.release();
  });
});

test("close stops what is being written, keeps it, and refuses what comes after; the next instance goes on", async () => {
  const served = await serveFiles();
  const { id, url, offset } = await openUrl(served.door);
  const held = await heldPatch(url, bytes.subarray(0, 1_000), offset);
  await served.files.close();
  await served.files.close();
  held.end();
  await held.response.catch(() => undefined);
  expect((await refusalOf(write(served.door, id, 1_000, bytes.subarray(1_000)))).code).toBe("shutdown");
  expect((await served.files.fetch(new Request(url, { method: "HEAD", headers: tus }))).status).toBe(503);
  const next = await openDoor(served.second().files);
  await answerOf(write(next, id, 1_000, bytes.subarray(1_000)));
  await answerOf(next.call("file_transfer_commit", { transferId: id }));
});
