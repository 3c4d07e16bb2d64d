import { createHash } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { MemoryTaskStore } from "@longjobs/core";
import { createFiles } from "@longjobs/files";
import { createTasks } from "@longjobs/tasks";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { expect, it } from "vitest";

it("a large result of a task is a file: linked in its answer, read through resources/read, gone with its task", async () => {
  const dir = await mkdtemp(join(tmpdir(), "longjobs-spilled-"));
  const box = await mkdtemp(join(tmpdir(), "longjobs-box-"));
  let nowMs = Date.now();
  const now = (): number => nowMs;
  const store = new MemoryTaskStore({ now });
  const files = createFiles({
    store,
    staging: { dir },
    scope: null,
    roots: { box: { path: box, read: true } },
    now,
  });
  const tasks = createTasks({
    store,
    scope: null,
    now,
    resultSpill: files.resultSpill(),
    retentionMs: 60_000,
  });
  const rows = Array.from({ length: 50_000 }, (_, id) => ({ id, name: `row ${id}` }));
  tasks.taskTool("export", { inlineBudgetMs: 0 }, () => ({
    content: [{ type: "text", text: JSON.stringify(rows) }],
  }));
  const server = new McpServer({ name: "export", version: "1.0.0" });
  files.attach(server);
  tasks.attach(server);
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new Client({ name: "reader", version: "1.0.0" });
  await client.connect(near);

  const started = await client.callTool({ name: "export" });
  const { taskId } = started.structuredContent as { taskId: string };
  const result = await client.callTool({
    name: "durable_task_get",
    arguments: { taskId, waitSeconds: 20 },
  });
  const content = result.content as readonly {
    type: string;
    uri?: string;
    size?: number;
    description?: string;
  }[];
  const link = content.find(({ type }) => type === "resource_link");
  const { contents } = await client.readResource({ uri: link?.uri ?? "" });
  const text = (contents[0] as { readonly text: string }).text;
  expect(link?.size).toBe(Buffer.byteLength(text));
  expect(link?.description).toBe(`sha256 ${createHash("sha256").update(text).digest("hex")}`);
  const whole = JSON.parse(text) as { readonly content: readonly [{ readonly text: string }] };
  expect(JSON.parse(whole.content[0].text)).toEqual(rows);

  nowMs += 30 * 24 * 3_600_000;
  await tasks.lifecycle.sweep();
  await files.sweep();
  expect(await readdir(dir, { recursive: true })).toEqual([]);
  expect(store.size).toBe(0);
  await client.close();
  await tasks.close();
  await files.close();
  await rm(dir, { recursive: true });
  await rm(box, { recursive: true });
});
