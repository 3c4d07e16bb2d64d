import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";

import { asSdkTaskStore } from "../../src/index.ts";
import { startTasks } from "../support/started-tasks.ts";
import { echoTool, text } from "../support/tools.ts";
import { newV1Server, openV1Door } from "../support/v1-door.ts";

const fallbackTools = ["durable_task_get", "durable_task_respond", "durable_task_cancel"];

test("a low-level server may set its own handlers after attach, and list in pages", async () => {
  const { tasks } = startTasks();
  echoTool(tasks);
  const server = newV1Server(tasks, { lowLevel: true }) as Server;
  server.assertCanSetRequestHandler("tools/list");
  const inputSchema = { type: "object" as const };
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) =>
    params?.cursor === undefined
      ? { tools: [{ name: "one", inputSchema }], nextCursor: "2" }
      : { tools: [{ name: "two", inputSchema }] },
  );
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: "text", text: `theirs: ${params.name}` }],
  }));
  expect(() => server.assertCanSetRequestHandler("tools/list")).toThrow(/tools\/list/);
  const { client } = await openV1Door(tasks, { server: () => server });
  const names = async (cursor?: string): Promise<string[]> =>
    (await client.listTools(cursor === undefined ? {} : { cursor })).tools.map(({ name }) => name);
  expect(await names()).toEqual(["one", "echo", ...fallbackTools]);
  expect(await names("2")).toEqual(["two"]);
  expect(await client.callTool({ name: "two" })).toEqual(text("theirs: two"));
  expect(await client.callTool({ name: "echo", arguments: { words: "ours" } })).toEqual(text("ours"));
});

test("attach refuses a server that is connected, attached already, or has the SDK's own machinery", async () => {
  const { tasks } = startTasks();
  const server = newV1Server(tasks);
  expect(() => tasks.attach(server)).toThrow(/attached to this server already/);
  const machinery = asSdkTaskStore(tasks);
  const info = { name: "own", version: "1.0.0" };
  expect(() => tasks.attach(new McpServer(info, machinery))).toThrow(/tasks\/get/);
  const connected = new McpServer(info);
  await openV1Door(tasks, { server: () => connected });
  expect(() => tasks.attach(connected)).toThrow(/before the server connects/);
  echoTool(tasks);
  const taken = new McpServer(info);
  taken.registerTool("echo", {}, async () => ({ content: [] }));
  expect(() => tasks.attach(taken)).toThrow(/echo/);
  const strange = { inputSchema: { "~standard": { version: 1, vendor: "x", validate: String } } } as never;
  expect(() => tasks.taskTool("strange", strange, () => text("never"))).toThrow(
    /inputSchema of strange cannot be listed/,
  );
});
