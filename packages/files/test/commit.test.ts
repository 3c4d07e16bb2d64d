import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { MemoryTaskStore, LongJobsError, type TaskPatch } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { answerOf, openDoor, refusalOf } from "./support/doors.ts";
import { namesIn, startFiles, takeErrors } from "./support/started-files.ts";
import { openUpload, publishBytes, statusOf, write } from "./support/uploads.ts";

const bytes = someBytes(64);

describe("P60: only what is verified is published", () => {
  test("a wrong sha256 publishes nothing, keeps the bytes, and leaves the transfer open for the right one", async () => {
    const { files, box } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 64 });
    await answerOf(write(door, id, 0, bytes));
    const refusal = await refusalOf(
      door.call("file_transfer_commit", { transferId: id, sha256: sha256("other") }),
    );
    expect(refusal).toMatchObject({ code: "checksum_mismatch", partial: { sha256: sha256(bytes) } });
    expect(await namesIn(box)).toEqual([]);
    expect(await statusOf(door, id)).toMatchObject({ status: "open", offset: 64 });
    await answerOf(door.call("file_transfer_commit", { transferId: id, sha256: sha256(bytes) }));
    expect(await readFile(join(box, "file.bin"))).toEqual(bytes);
  });

  test("without any sha256 nothing is published", async () => {
    const { files, box } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 64 });
    await answerOf(write(door, id, 0, bytes));
    expect(await refusalOf(door.call("file_transfer_commit", { transferId: id }))).toMatchObject({
      code: "checksum_mismatch",
      param: "sha256",
    });
    expect(await namesIn(box)).toEqual([]);
  });

  test("a sha256 that is not the declared one is refused, also when the declared one is right", async () => {
    const { files, box } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 64, sha256: sha256(bytes) });
    await answerOf(write(door, id, 0, bytes));
    const given = { transferId: id, sha256: sha256("other") };
    expect((await refusalOf(door.call("file_transfer_commit", given))).code).toBe("checksum_mismatch");
    expect(await namesIn(box)).toEqual([]);
    await answerOf(
      door.call("file_transfer_commit", { transferId: id, sha256: sha256(bytes).toUpperCase() }),
    );
  });

  // CASES part 2, files: "size_mismatch says continue, but marks the session failed".
  test("too few bytes: size_mismatch names where to go on, and the transfer goes on there", async () => {
    const { files } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 64, sha256: sha256(bytes) });
    await answerOf(write(door, id, 0, bytes.subarray(0, 40)));
    const refusal = await refusalOf(door.call("file_transfer_commit", { transferId: id }));
    expect(refusal).toMatchObject({ code: "size_mismatch", partial: { cursor: 40 } });
    await answerOf(write(door, id, 40, bytes.subarray(40)));
    await answerOf(door.call("file_transfer_commit", { transferId: id }));
  });

  test("an existing target: the policy of the opening", async () => {
    const { files, box } = await startFiles();
    const door = await openDoor(files);
    await writeFile(join(box, "file.bin"), "old");
    const wish = { direction: "upload", path: "file.bin", size: 64, sha256: sha256(bytes) };
    expect((await refusalOf(door.call("file_transfer_open", wish))).code).toBe("target_exists");
    const version = await openUpload(door, { ...wish, ifExists: "version" });
    await answerOf(write(door, version, 0, bytes));
    const kept = await answerOf(door.call("file_transfer_commit", { transferId: version }));
    expect(kept["path"]).not.toBe("file.bin");
    expect(await readFile(join(box, String(kept["path"])))).toEqual(bytes);
    expect(await readFile(join(box, "file.bin"), "utf8")).toBe("old");
    const replace = await openUpload(door, { ...wish, ifExists: "replace" });
    await answerOf(write(door, replace, 0, bytes));
    await answerOf(door.call("file_transfer_commit", { transferId: replace }));
    expect(await readFile(join(box, "file.bin"))).toEqual(bytes);
  });

  test("a target that came between the opening and the commit is not touched; the transfer stays open", async () => {
    const { files, box } = await startFiles();
    const door = await openDoor(files);
    const id = await openUpload(door, { size: 64, sha256: sha256(bytes) });
    await answerOf(write(door, id, 0, bytes));
    await writeFile(join(box, "file.bin"), "theirs");
    expect((await refusalOf(door.call("file_transfer_commit", { transferId: id }))).code).toBe(
      "target_exists",
    );
    expect(await readFile(join(box, "file.bin"), "utf8")).toBe("theirs");
    expect(await statusOf(door, id)).toMatchObject({ status: "open", offset: 64 });
  });
});

test("a commit whose answer was lost answers the same again, and publishes once", async () => {
  const { files, box } = await startFiles();
  const door = await openDoor(files);
  const id = await publishBytes(door, "file.bin", bytes);
  const again = await answerOf(door.call("file_transfer_commit", { transferId: id, sha256: sha256(bytes) }));
  expect(again).toMatchObject({ status: "committed", path: "file.bin", sha256: sha256(bytes) });
  expect(await namesIn(box)).toEqual(["file.bin"]);
});

test("a committed or aborted transfer takes nothing any more", async () => {
  const { files } = await startFiles();
  const door = await openDoor(files);
  const committed = await publishBytes(door, "file.bin", bytes);
  const aborted = await openUpload(door, { path: "other.bin" });
  await answerOf(door.call("file_transfer_abort", { transferId: aborted }));
  for (const transferId of [committed, aborted]) {
    expect((await refusalOf(write(door, transferId, 0, bytes))).code).toBe("not_active");
    expect((await refusalOf(door.call("file_transfer_read", { transferId, offset: 0 }))).code).toBe(
      "not_active",
    );
  }
  expect((await refusalOf(door.call("file_transfer_abort", { transferId: committed }))).code).toBe(
    "not_active",
  );
  expect((await refusalOf(door.call("file_transfer_commit", { transferId: aborted }))).code).toBe(
    "not_active",
  );
});

test("an abort deletes the bytes at once and can be repeated", async () => {
  const { files, staging } = await startFiles();
  const door = await openDoor(files);
  const transferId = await openUpload(door, { size: 64 });
  await answerOf(write(door, transferId, 0, bytes));
  expect((await namesIn(staging)).length).toBeGreaterThan(0);
  for (let repeat = 0; repeat < 2; repeat += 1)
    expect(await answerOf(door.call("file_transfer_abort", { transferId }))).toMatchObject({
      status: "aborted",
    });
  expect(await namesIn(staging)).toEqual([]);
});

/** A store whose next terminal write happens, or not, and is then reported as failed. */
class FailingStore extends MemoryTaskStore {
  failure: "before" | "after" | undefined;

  override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    const failure = patch.status === "completed" ? this.failure : undefined;
    if (failure !== undefined) this.failure = undefined;
    if (failure === "before")
      throw new LongJobsError("store_unavailable", "/var/db is down", { retryable: true });
    const version = await super.update(taskId, patch, expectedVersion);
    if (failure === "after")
      throw new LongJobsError("store_unavailable", "/var/db is down", { retryable: true });
    return version;
  }
}

test("the file has its name but the record could not say so: the commit is repeated, and knows its own file", async () => {
  const store = new FailingStore();
  const started = await startFiles({ store });
  const door = await openDoor(started.files);
  const id = await openUpload(door, { size: 64, sha256: sha256(bytes) });
  await answerOf(write(door, id, 0, bytes));
  store.failure = "before";
  const failed = await door.call("file_transfer_commit", { transferId: id });
  expect(failed.structured["error"]).toMatchObject({ code: "store_unavailable", retryable: true });
  // What the store says is for the operator, not for clients.
  expect(failed.text).not.toContain("/var/db");
  expect(takeErrors(started)).toHaveLength(1);
  expect(await namesIn(started.box)).toEqual(["file.bin"]);
  await answerOf(door.call("file_transfer_commit", { transferId: id }));
  expect(await namesIn(started.box)).toEqual(["file.bin"]);
  expect(await namesIn(started.staging)).toEqual([]);
});

test("a commit that was written although the store reported a failure has succeeded", async () => {
  const store = new FailingStore();
  const { files } = await startFiles({ store });
  const door = await openDoor(files);
  const id = await openUpload(door, { size: 64, sha256: sha256(bytes) });
  await answerOf(write(door, id, 0, bytes));
  store.failure = "after";
  expect(await answerOf(door.call("file_transfer_commit", { transferId: id }))).toMatchObject({
    status: "committed",
  });
});

test("missing parents are made at the commit, not at the opening", async () => {
  const { files, box } = await startFiles();
  const door = await openDoor(files);
  const id = await openUpload(door, { path: "a/b/c.bin", size: 64, sha256: sha256(bytes) });
  await answerOf(write(door, id, 0, bytes));
  expect(await namesIn(box)).toEqual([]);
  await answerOf(door.call("file_transfer_commit", { transferId: id }));
  expect(await namesIn(box)).toEqual(["a", "a/b", "a/b/c.bin"]);
});

test("the root is chosen by name where there are several, and only among those with the right", async () => {
  const { dir, second } = await startFiles();
  await mkdir(join(dir, "in"));
  await mkdir(join(dir, "out"));
  await chmod(join(dir, "in"), 0o700);
  const { files } = second({
    roots: { in: { path: join(dir, "in"), write: true, read: false }, out: { path: join(dir, "out") } },
  });
  const door = await openDoor(files);
  expect(await publishBytes(door, "a.bin", bytes)).toMatch(/./);
  const refusal = await refusalOf(
    door.call("file_transfer_open", { direction: "download", path: "a.bin", root: "in" }),
  );
  expect(refusal.code).toBe("path_not_allowed");
});
