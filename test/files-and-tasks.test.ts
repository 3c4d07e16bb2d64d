import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createFiles, type Files } from "@longjobs/files";
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks, type Tasks } from "@longjobs/tasks";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer as V1McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { McpServer } from "@modelcontextprotocol/server";
import { afterEach, beforeEach, expect, it } from "vitest";

let dir = "";
let closers: (() => Promise<unknown>)[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "longjobs-both-"));
  await mkdir(join(dir, "box"));
});

afterEach(async () => {
  for (const close of closers.toReversed()) await close();
  closers = [];
  await rm(dir, { recursive: true });
});

/** Tasks and files over one log. */
async function openBoth(): Promise<{ tasks: Tasks; files: Files }> {
  const store = await WalTaskStore.open({ dir: join(dir, "store") });
  const tasks = createTasks({ store, scope: null });
  const files = createFiles({
    store,
    staging: join(dir, "staging"),
    roots: { box: { path: join(dir, "box"), write: true } },
    scope: null,
  });
  closers.push(
    () => store.close(),
    () => tasks.close(),
    () => files.close(),
  );
  tasks.taskTool("hello", { inlineBudgetMs: 0 }, async () => ({ content: [{ type: "text", text: "done" }] }));
  return { tasks, files };
}

const attachments: readonly (readonly [
  string,
  (both: { tasks: Tasks; files: Files }) => V1McpServer | McpServer,
])[] = [
  ["SDK v1, tasks first", ({ tasks, files }) => files.attach(tasks.attach(new V1McpServer(info)))],
  ["SDK v1, files first", ({ tasks, files }) => tasks.attach(files.attach(new V1McpServer(info)))],
  ["SDK v2, tasks first", ({ tasks, files }) => files.attach(tasks.attach(new McpServer(info)))],
  ["SDK v2, files first", ({ tasks, files }) => tasks.attach(files.attach(new McpServer(info)))],
];
const info = { name: "both", version: "1.0.0" };

it.each(attachments)("tasks and files share a server and a log: %s", async (_name, attach) => {
  const both = await openBoth();
  const server = attach(both);
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new Client(info);
  await client.connect(near);
  closers.push(() => client.close());
  const call = async (name: string, args: object): Promise<Record<string, unknown>> => {
    const result = await client.callTool({ name, arguments: { ...args } });
    expect(result.isError, JSON.stringify(result)).not.toBe(true);
    return { ...(result.structuredContent as object), content: result.content };
  };
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  expect(names).toEqual(
    expect.arrayContaining(["hello", "durable_task_get", "file_transfer_open", "file_transfer_abort"]),
  );

  const { taskId } = await call("hello", {});
  const done = await call("durable_task_get", { taskId, waitSeconds: 10 });
  expect(done["content"]).toEqual([{ type: "text", text: "done" }]);

  const { transferId } = await call("file_transfer_open", { direction: "upload", path: "a.txt" });
  await call("file_transfer_write", { transferId, offset: 0, data: Buffer.from("abc").toString("base64") });
  const sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  await call("file_transfer_commit", { transferId, sha256 });
  expect(await readFile(join(dir, "box/a.txt"), "utf8")).toBe("abc");

  const crossed = await client.callTool({ name: "durable_task_get", arguments: { taskId: transferId } });
  expect(crossed.structuredContent).toMatchObject({ error: { code: "unknown_task" } });
});

it("a root that holds the log, or lies in it, is a configuration error", async () => {
  const store = await WalTaskStore.open({ dir: join(dir, "box/store") });
  closers.push(() => store.close());
  const options = { store, staging: join(dir, "staging"), roots: { box: { path: join(dir, "box") } } };
  expect(() => createFiles(options)).toThrow(TypeError);
  expect(() => createFiles({ ...options, staging: join(dir, "box/staging"), stateDirs: [] })).toThrow(
    TypeError,
  );
  expect(() => createFiles({ ...options, roots: { box: { path: join(dir, "box/store/inner") } } })).toThrow(
    TypeError,
  );
});
