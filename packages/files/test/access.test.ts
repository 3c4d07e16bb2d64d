import { TaskLifecycle, type TaskRecord, type TaskStore } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { sha256, someBytes } from "./disk/support/bytes.ts";
import { answerOf, httpRoads, openDoor, refusalOf, roads, type Caller, type Door } from "./support/doors.ts";
import { namesIn, startFiles } from "./support/started-files.ts";
import { openDownload, openUpload, publishBytes, write } from "./support/uploads.ts";

const bytes = someBytes(32);
const unknown = "00000000-0000-4000-8000-000000000000";

function as(sub: string, iss = "https://id.example", clientId = "host"): Caller {
  return { clientId, extra: { iss, sub } };
}

const strangers: readonly (readonly [string, Caller])[] = [
  ["another person", as("eve")],
  ["the same subject of another issuer", as("ada", "https://other.example")],
  ["the same person in another client", as("ada", "https://id.example", "other")],
  ["a sibling in the tenant", as("ada/eve")],
];

const calls: readonly (readonly [string, object])[] = [
  ["file_transfer_status", {}],
  ["file_transfer_write", { offset: 0, data: bytes.toString("base64") }],
  ["file_transfer_read", { offset: 0 }],
  ["file_transfer_commit", { sha256: sha256(bytes) }],
  ["file_transfer_abort", {}],
];

async function recordText(store: TaskStore, id: string): Promise<string> {
  return JSON.stringify(await store.get(id));
}

// CASES part 2, files: "no owner on handles".
describe.each(httpRoads)("P31: %s", (road) => {
  test.each(calls)(
    "%s of somebody else's transfer answers to the letter like one of none",
    async (name, args) => {
      const { files, store, staging } = await startFiles({ scope: undefined as never });
      const door = await openDoor(files, road);
      await publishFor(door, as("ada"));
      const ids = [
        await openUpload(door, { size: 32, path: "other.bin" }, as("ada")),
        await openDownload(door, "file.bin", as("ada")),
      ];
      for (const transferId of ids) {
        const before = await recordText(store, transferId);
        for (const [who, stranger] of strangers) {
          const foreign = await door.call(name, { transferId, ...args }, stranger);
          const missing = await door.call(name, { transferId: unknown, ...args }, stranger);
          expect(foreign, who).toEqual(missing);
          expect(foreign.structured["error"], who).toMatchObject({ code: "unknown_transfer" });
        }
        expect(await recordText(store, transferId)).toBe(before);
        // The owner is somebody, and gets another answer.
        expect(await door.call(name, { transferId, ...args }, as("ada"))).not.toMatchObject({
          structured: { error: { code: "unknown_transfer" } },
        });
      }
      expect((await namesIn(staging)).length).toBeLessThanOrEqual(2);
    },
  );

  test("a caller who cannot be told from others is refused, with the line that mends it", async () => {
    const { files } = await startFiles({ scope: undefined as never });
    const door = await openDoor(files, road);
    for (const caller of [undefined, { clientId: "host" }, { clientId: "host", extra: { sub: "ada" } }]) {
      const refusal = await refusalOf(
        door.call("file_transfer_open", { direction: "upload", path: "a" }, caller),
      );
      expect(refusal.message).toContain("createFiles({ scope");
    }
  });
});

async function publishFor(door: Door, caller: Caller): Promise<void> {
  const transferId = await openUpload(door, { size: 32, sha256: sha256(bytes) }, caller);
  const data = bytes.toString("base64");
  await answerOf(door.call("file_transfer_write", { transferId, offset: 0, data }, caller));
  await answerOf(door.call("file_transfer_commit", { transferId }, caller));
}

test("in memory there is one user, without a word about scope", async () => {
  const { files } = await startFiles({ scope: undefined as never });
  const door = await openDoor(files, "v2 memory");
  await publishBytes(door, "file.bin", bytes);
});

const hostileIds = [
  "../../etc/passwd",
  "..\\..\\windows",
  "a/b",
  "a\0b",
  "%2e%2e%2f",
  "x".repeat(300),
  "",
  "__proto__",
  "constructor",
  "*",
  "files~signing-secret",
  "files~quota~0",
  "${id}",
  "a b",
];

describe.each(roads)("P33: %s", (road) => {
  test("a hostile id is unknown on every tool; no store call is made, no file is touched", async () => {
    const { files, store, staging } = await startFiles();
    const door = await openDoor(files, road);
    await files.open();
    const asked: string[] = [];
    const get = store.get.bind(store);
    store.get = async (id: string): Promise<TaskRecord | undefined> => {
      asked.push(id);
      return get(id);
    };
    const before = await namesIn(staging);
    for (const transferId of hostileIds) {
      for (const [name, args] of calls) {
        const refusal = await refusalOf(door.call(name, { transferId, ...args }));
        expect(refusal.code).toBe("unknown_transfer");
        if (transferId !== "")
          expect(JSON.stringify(refusal)).not.toContain(JSON.stringify(transferId).slice(1, -1));
      }
    }
    // A well-formed name that nobody has is asked for, and that is all.
    expect(new Set(asked)).toEqual(new Set(["constructor"]));
    expect(await namesIn(staging)).toEqual(before);
  });
});

// CASES part 2, tasks: "durable_task_cancel / _get work on file handles".
test("a transfer looks unknown to every task call, and a task to every tool", async () => {
  const { files, store } = await startFiles();
  const door = await openDoor(files);
  const lifecycle = new TaskLifecycle({ store, sweepIntervalMs: null });
  const transferId = await openUpload(door, { size: 32 });
  const before = await recordText(store, transferId);
  await expect(lifecycle.getTask(transferId)).rejects.toMatchObject({ code: "unknown_task" });
  await expect(lifecycle.cancelTask(transferId)).rejects.toMatchObject({ code: "unknown_task" });
  await expect(lifecycle.updateTask(transferId, {})).rejects.toMatchObject({ code: "unknown_task" });
  await expect(lifecycle.acquire(transferId)).rejects.toMatchObject({ code: "unknown_task" });
  expect(await recordText(store, transferId)).toBe(before);
  const { taskId } = await lifecycle.createTask();
  for (const [name, args] of calls)
    expect((await refusalOf(door.call(name, { transferId: taskId, ...args }))).code).toBe("unknown_transfer");
  expect((await lifecycle.getTask(taskId)).status).toBe("working");
  lifecycle.handle(taskId);
  await lifecycle.close();
  await write(door, transferId, 0, bytes);
});
