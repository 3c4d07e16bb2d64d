import { MemoryTaskStore, TaskLifecycle, type ResultSpill } from "@longjobs/core";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer as V1McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer as V2McpServer } from "@modelcontextprotocol/server";
import { describe, expect, test } from "vitest";

import { sha256 } from "./disk/support/bytes.ts";
import { answerOf, closeLater, openDoor, refusalOf } from "./support/doors.ts";
import { serveFiles } from "./support/http.ts";
import { namesIn, startClock, startFiles, type StartedFiles } from "./support/started-files.ts";

const text = JSON.stringify({ rows: Array.from({ length: 20_000 }, (_, id) => ({ id, name: `row ${id}` })) });
const bytes = Buffer.from(text);

/** A task, and its spilled result. */
async function spillOne(
  started: StartedFiles,
  scope?: string,
): Promise<{ taskId: string; spilled: Awaited<ReturnType<ResultSpill["spill"]>> }> {
  const lifecycle = new TaskLifecycle({ store: started.store, sweepIntervalMs: null });
  closeLater(() => lifecycle.close());
  const { taskId } = await lifecycle.createTask(scope === undefined ? {} : { scope });
  const spill = started.files.resultSpill();
  const spilled = await spill.spill({
    taskId,
    scope,
    name: "rows.json",
    mediaType: "application/json",
    bytes,
    untilMs: null,
  });
  return { taskId, spilled };
}

/** Reads a resource as a client of an SDK v1 does, from a server of either. */
async function readResource(started: StartedFiles, uri: string, sdk: "v1" | "v2" = "v1"): Promise<string> {
  const [near, far] = InMemoryTransport.createLinkedPair();
  const info = { name: "test", version: "1.0.0" };
  const server = sdk === "v1" ? new V1McpServer(info) : new V2McpServer(info);
  started.files.attach(server);
  await server.connect(far);
  const client = new Client(info);
  await client.connect(near);
  closeLater(() => client.close());
  const { contents } = await client.readResource({ uri });
  return String((contents[0] as { text?: string } | undefined)?.text);
}

test.each(["v1", "v2"] as const)(
  "a spilled result is read through resources/read of SDK %s, by tool and by URL",
  async (sdk) => {
    const started = await serveFiles();
    const { spilled } = await spillOne(started);
    expect(spilled).toMatchObject({
      size: bytes.length,
      sha256: sha256(bytes),
      mimeType: "application/json",
      name: "rows.json",
    });
    expect(await readResource(started, spilled.uri, sdk)).toBe(text);
    const door = await openDoor(started.files);
    const piece = await answerOf(
      door.call("file_transfer_read", { transferId: spilled.transferId, offset: 10, length: 100 }),
    );
    expect(Buffer.from(String(piece["data"]), "base64")).toEqual(bytes.subarray(10, 110));
    const status = await answerOf(door.call("file_transfer_status", { transferId: spilled.transferId }));
    expect(status).toMatchObject({ path: "rows.json", sha256: sha256(bytes) });
    const response = await fetch(String(status["downloadUrl"]));
    expect(await response.text()).toBe(text);
  },
);

describe("it goes with its task", () => {
  test("kept while the task is there, also across a restart and a sweep", async () => {
    const started = await startFiles();
    const { spilled } = await spillOne(started);
    await started.files.sweep();
    const next = started.second();
    next.files.resultSpill();
    await next.files.sweep();
    expect(await readResource(next, spilled.uri)).toBe(text);
  });

  test("gone with it: unknown at once, and after a sweep no byte and no record is left", async () => {
    const clock = startClock();
    const store = new MemoryTaskStore({ now: clock.now });
    const started = await startFiles({ store, now: clock.now });
    const { taskId, spilled } = await spillOne(started);
    const record = await store.get(taskId);
    await store.update(taskId, { ttlMs: 0 }, record?.version ?? 0);
    await expect(readResource(started, spilled.uri)).rejects.toMatchObject({ code: -32_602 });
    const door = await openDoor(started.files);
    const read = { transferId: spilled.transferId, offset: 0 };
    expect((await refusalOf(door.call("file_transfer_read", read))).code).toBe("unknown_transfer");
    await started.files.sweep();
    await started.files.sweep();
    expect(await namesIn(started.staging)).toEqual([]);
    expect(store.size).toBe(0);
  });

  test("its own time is at least that of the task, as it was told", async () => {
    const clock = startClock();
    const store = new MemoryTaskStore({ now: clock.now });
    const started = await startFiles({ store, now: clock.now, idleMs: 1_000, maxLifetimeMs: 1_000 });
    const lifecycle = new TaskLifecycle({ store, now: clock.now, sweepIntervalMs: null });
    closeLater(() => lifecycle.close());
    const { taskId } = await lifecycle.createTask({ retentionMs: 30 * 86_400_000 });
    const spill = started.files.resultSpill();
    const untilMs = clock.now() + 10 * 86_400_000;
    const spilled = await spill.spill({ taskId, name: "r", mediaType: "text/plain", bytes, untilMs });
    clock.advance(10 * 86_400_000 - 1);
    expect(await readResource(started, spilled.uri)).toBe(text);
  });

  test("discard deletes it, and again is fine", async () => {
    const started = await startFiles();
    const { spilled } = await spillOne(started);
    const spill = started.files.resultSpill();
    await spill.discard(spilled);
    await spill.discard(spilled);
    expect(await namesIn(started.staging)).toEqual([]);
    await expect(readResource(started, spilled.uri)).rejects.toMatchObject({ code: -32_602 });
  });

  test("a client cannot abort it, nor write to it", async () => {
    const started = await startFiles();
    const { spilled } = await spillOne(started);
    const door = await openDoor(started.files);
    const { transferId } = spilled;
    expect((await refusalOf(door.call("file_transfer_abort", { transferId }))).code).toBe("not_active");
    expect(
      (await refusalOf(door.call("file_transfer_commit", { transferId, sha256: sha256(bytes) }))).code,
    ).toBe("not_active");
    expect(await readResource(started, spilled.uri)).toBe(text);
  });
});

test("the result of somebody else is unknown to the letter", async () => {
  const started = await startFiles({ scope: () => "eve" });
  const { spilled } = await spillOne(started, "ada");
  const unknown = await readResource(started, "longjobs-result:nobody").catch((error: unknown) => error);
  const foreign = await readResource(started, spilled.uri).catch((error: unknown) => error);
  expect(JSON.stringify(foreign)).toBe(JSON.stringify(unknown));
  expect(foreign).toMatchObject({ code: -32_602 });
});

test("a result that does not fit one message is told where else it is", async () => {
  const started = await startFiles({ maxMessageBytes: 64 * 1024 });
  const { spilled } = await spillOne(started);
  await expect(readResource(started, spilled.uri)).rejects.toMatchObject({
    code: -32_602,
    data: { code: "chunk_too_large", partial: { maxBytes: expect.any(Number) as number } },
  });
});

test("files without spilled results have no resources", async () => {
  const started = await startFiles();
  await expect(readResource(started, "longjobs-result:x")).rejects.toMatchObject({ code: -32_601 });
});
