import { MemoryTaskStore, type TaskRecord } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { answerOf, openDoor, refusalOf, type Caller, type Door } from "./support/doors.ts";
import { namesIn, startClock, startFiles } from "./support/started-files.ts";
import { openUpload, publishBytes, statusOf, write } from "./support/uploads.ts";

const hour = 3_600_000;

/** Holds the creation of transfers back. */
class GatedStore extends MemoryTaskStore {
  gate: Promise<void> | undefined;
  waiting = 0;

  override async create(record: TaskRecord): Promise<void> {
    if (record.kind === "transfer" && this.gate !== undefined) {
      this.waiting += 1;
      await this.gate;
    }
    await super.create(record);
  }
}

// CASES part 2, files: "no cap on uploads".
describe("P67: quotas, before anything is written", () => {
  test("a file that is declared larger than the limit is refused at the opening", async () => {
    const { files, store } = await startFiles({ limits: { maxFileBytes: 100 } });
    const door = await openDoor(files);
    const refusal = await refusalOf(
      door.call("file_transfer_open", { direction: "upload", path: "a", size: 101 }),
    );
    expect(refusal).toMatchObject({ code: "file_too_large", partial: { maxBytes: 100 } });
    expect((store as MemoryTaskStore).size).toBe(0);
  });

  test("a file of unknown size is refused at the chunk that would be too much, which is not stored", async () => {
    const { files } = await startFiles({ limits: { maxFileBytes: 100 } });
    const door = await openDoor(files);
    const id = await openUpload(door);
    await answerOf(write(door, id, 0, someBytes(100)));
    expect((await refusalOf(write(door, id, 100, someBytes(1)))).code).toBe("file_too_large");
    expect(await statusOf(door, id)).toMatchObject({ offset: 100 });
  });

  test("bytes of one scope: declared ones count at the opening, others as they come; others have their own", async () => {
    const { files, staging } = await startFiles({
      limits: { maxScopeBytes: 100 },
      scope: ({ authInfo }) => authInfo?.clientId ?? "nobody",
    });
    const door = await openDoor(files);
    const [ada, eve]: Caller[] = [{ clientId: "ada" }, { clientId: "eve" }];
    const declared = await openUpload(door, { path: "a", size: 60 }, ada);
    const before = await namesIn(staging);
    const refusal = await refusalOf(
      door.call("file_transfer_open", { direction: "upload", path: "b", size: 41 }, ada),
    );
    expect(refusal).toMatchObject({
      code: "quota_exceeded",
      retryable: true,
      partial: { used: 60, limit: 100 },
    });
    expect(await namesIn(staging)).toEqual(before);
    const open = await openUpload(door, { path: "c" }, ada);
    const chunk = (length: number, offset = 0): object => ({
      transferId: open,
      offset,
      data: someBytes(length).toString("base64"),
    });
    await answerOf(door.call("file_transfer_write", chunk(40), ada));
    expect((await refusalOf(door.call("file_transfer_write", chunk(1, 40), ada))).code).toBe(
      "quota_exceeded",
    );
    await openUpload(door, { path: "d", size: 100 }, eve);
    // What is given up is free again.
    await answerOf(door.call("file_transfer_abort", { transferId: declared }, ada));
    await answerOf(door.call("file_transfer_write", chunk(60, 40), ada));
  });

  test("open transfers, up and down", async () => {
    const { files } = await startFiles({ limits: { maxOpenTransfers: 2 } });
    const door = await openDoor(files);
    await publishBytes(door, "file.bin", someBytes(8));
    await openUpload(door, { path: "a" });
    const down = await answerOf(door.call("file_transfer_open", { direction: "download", path: "file.bin" }));
    const third = { direction: "upload", path: "b" };
    expect((await refusalOf(door.call("file_transfer_open", third))).code).toBe("quota_exceeded");
    await answerOf(door.call("file_transfer_abort", { transferId: down["transferId"] }));
    await answerOf(door.call("file_transfer_open", third));
  });

  test("files: what was published counts until its record goes", async () => {
    const clock = startClock();
    const { files } = await startFiles({ limits: { maxScopeFiles: 2 }, now: clock.now, retentionMs: hour });
    const door = await openDoor(files);
    await publishBytes(door, "a", someBytes(8));
    await publishBytes(door, "b", someBytes(8));
    const wish = { direction: "upload", path: "c" };
    expect((await refusalOf(door.call("file_transfer_open", wish))).code).toBe("quota_exceeded");
    clock.advance(hour + 1);
    await answerOf(door.call("file_transfer_open", wish));
  });

  test("a transfer that expired counts no longer, sweep or not", async () => {
    const clock = startClock();
    const { files } = await startFiles({ limits: { maxOpenTransfers: 1 }, now: clock.now, idleMs: hour });
    const door = await openDoor(files);
    await openUpload(door, { path: "a" });
    clock.advance(hour + 1);
    await openUpload(door, { path: "b" });
  });

  test("a transfer that is just being opened counts, before its record is there", async () => {
    const store = new GatedStore();
    const { files } = await startFiles({ store, limits: { maxOpenTransfers: 1 } });
    const door = await openDoor(files);
    await files.open();
    const gate = Promise.withResolvers<void>();
    store.gate = gate.promise;
    const first = door.call("file_transfer_open", { direction: "upload", path: "a" });
    await expect.poll(() => store.waiting).toBe(1);
    const second = door.call("file_transfer_open", { direction: "upload", path: "b" });
    expect((await refusalOf(second)).code).toBe("quota_exceeded");
    gate.resolve();
    await answerOf(first);
  });

  test("50 openings at once, of which 10 fit: 10", async () => {
    const { files, second } = await startFiles({ limits: { maxOpenTransfers: 10 } });
    const [near, far] = [await openDoor(files), await openDoor(second().files)];
    const doorOf = (index: number): Door => (index % 2 === 0 ? near : far);
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        doorOf(index).call("file_transfer_open", { direction: "upload", path: `f${index}` }),
      ),
    );
    expect(answers.filter((answer) => !answer.isError)).toHaveLength(10);
  });
});

describe("expiry", () => {
  // CASES part 2, files: "expired sessions never delete .part".
  test("P23: an expired transfer is unknown, and after a sweep nothing is left of it: no byte, no record, no count", async () => {
    const clock = startClock();
    const { files, store, staging } = await startFiles({ now: clock.now, idleMs: hour });
    const door = await openDoor(files);
    const ids = [];
    for (let index = 0; index < 20; index += 1) {
      const id = await openUpload(door, { path: `f${index}`, size: 10 });
      await answerOf(write(door, id, 0, someBytes(5)));
      ids.push(id);
    }
    expect((await namesIn(staging)).length).toBeGreaterThanOrEqual(20);
    clock.advance(hour + 1);
    for (const transferId of ids)
      expect((await refusalOf(door.call("file_transfer_status", { transferId }))).code).toBe(
        "unknown_transfer",
      );
    await files.sweep();
    await files.sweep();
    expect(await namesIn(staging)).toEqual([]);
    expect((store as MemoryTaskStore).size).toBe(0);
  });

  test("writing moves the expiry, up to the cap; reading moves that of a download", async () => {
    const clock = startClock();
    const { files } = await startFiles({ now: clock.now, idleMs: hour, maxLifetimeMs: 3 * hour });
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 100 });
    for (let chunk = 0; chunk < 3; chunk += 1) {
      clock.advance(0.9 * hour);
      await answerOf(write(door, id, chunk, someBytes(1)));
    }
    // 2.7 hours have gone: the cap is near, and it stays.
    clock.advance(0.2 * hour);
    await answerOf(write(door, id, 3, someBytes(1)));
    clock.advance(0.2 * hour);
    expect((await refusalOf(write(door, id, 4, someBytes(1)))).code).toBe("unknown_transfer");

    await publishBytes(door, "down.bin", someBytes(8));
    const down = await answerOf(door.call("file_transfer_open", { direction: "download", path: "down.bin" }));
    const { transferId } = down;
    for (let read = 0; read < 3; read += 1) {
      clock.advance(0.9 * hour);
      await answerOf(door.call("file_transfer_read", { transferId, offset: 0 }));
    }
  });

  test("P60: bytes that failed their check stay until the expiry, and then really go", async () => {
    const clock = startClock();
    const { files, staging } = await startFiles({ now: clock.now, idleMs: hour });
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 5 });
    await answerOf(write(door, id, 0, someBytes(5)));
    await refusalOf(door.call("file_transfer_commit", { transferId: id, sha256: sha256("other") }));
    clock.advance(hour - 1);
    await files.sweep();
    expect(await statusOf(door, id)).toMatchObject({ offset: 5 });
    clock.advance(2);
    await files.sweep();
    expect(await namesIn(staging)).toEqual([]);
  });

  test("bytes that stayed behind when their transfer ended go with the next sweep", async () => {
    const { files, store, staging } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 5 });
    await answerOf(write(door, id, 0, someBytes(5)));
    // As after a crash between the record and the bytes.
    const record = await store.get(id);
    await store.update(id, { status: "cancelled" }, record?.version ?? 0);
    await files.sweep();
    expect(await namesIn(staging)).toEqual([]);
  });

  test("what has ended can be asked about for a while", async () => {
    const clock = startClock();
    const { files, store } = await startFiles({ now: clock.now, retentionMs: hour });
    const door = await openDoor(files);
    const id = await publishBytes(door, "file.bin", someBytes(8));
    clock.advance(hour - 1);
    expect(await statusOf(door, id)).toMatchObject({ status: "committed" });
    clock.advance(2);
    expect((await refusalOf(door.call("file_transfer_status", { transferId: id }))).code).toBe(
      "unknown_transfer",
    );
    await files.sweep();
    await files.sweep();
    expect((store as MemoryTaskStore).size).toBe(0);
  });
});
