import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterEach, beforeEach, expect, test } from "vitest";

import { textOf, type ToolReply } from "./by-tools.ts";

const file = fileURLToPath(new URL("one-server.ts", import.meta.url));
let dir = "";
let client: Client;
let transport: StdioClientTransport;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "longjobs-one-server-"));
});

afterEach(async () => {
  await client.close();
  await rm(dir, { recursive: true });
});

/** A host that starts the server, as after a crash: a new process, a new session, the same folder. */
async function startHost(sdk: string): Promise<void> {
  transport = new StdioClientTransport({ command: process.execPath, args: [file, sdk, dir] });
  client = new Client({ name: "host", version: "1.0.0" });
  await client.connect(transport);
}

async function killServer(): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    Object.assign(client, { onclose: resolve });
  });
  process.kill(transport.pid ?? 0, "SIGKILL");
  await closed;
}

async function call(name: string, args: object = {}): Promise<ToolReply> {
  return (await client.callTool({ name, arguments: { ...args } })) as ToolReply;
}

test.for(["v1", "v2"])(
  "a server of SDK %s that is killed between start, question and answer: the tools alone lead to the result",
  { timeout: 120_000 },
  async (sdk) => {
    await startHost(sdk);
    const started = await call("asking");
    const { taskId } = started.structuredContent as { readonly taskId: string };
    const wait = { taskId, waitSeconds: 25 };
    expect(textOf(await call("durable_task_get", wait))).toContain("Which colour?");

    await killServer();
    await startHost(sdk);
    expect(textOf(await call("durable_task_get", wait))).toContain("Which colour?");
    expect(await call("durable_task_respond", { taskId, response: "blue" })).not.toHaveProperty("isError");

    await killServer();
    await startHost(sdk);
    expect(textOf(await call("durable_task_get", wait))).toBe("The wall is blue.");
  },
);

test.for(["v1", "v2"])(
  "a server of SDK %s that is killed at work it may not repeat: the model is told, and what to do",
  { timeout: 120_000 },
  async (sdk) => {
    await startHost(sdk);
    const started = await call("slow", { name: "nobody" });
    const { taskId } = started.structuredContent as { readonly taskId: string };
    await killServer();
    await startHost(sdk);
    const lost = await call("durable_task_get", { taskId, waitSeconds: 25 });
    expect(lost).toMatchObject({
      isError: true,
      structuredContent: {
        status: "failed",
        error: { code: "interrupted", retryable: true, recoveryHint: expect.any(String) as unknown },
      },
    });
  },
);
