import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

import { MemoryTaskStore } from "@longjobs/core";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import type { AuthInfo } from "@modelcontextprotocol/sdk/server/auth/types.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { expect, test } from "vitest";

import { serveUsersV1 } from "../snippets/users-v1.ts";
import { callAsTask, never, taskMethods } from "../support/client-2025.ts";
import { greeter } from "../support/tools.ts";
import { closeLater } from "../support/v1-door.ts";

const people: { readonly [token: string]: string } = { "ada-1": "ada", "ada-2": "ada", eve: "eve" };

async function verifyAccessToken(token: string): Promise<AuthInfo> {
  const sub = people[token];
  if (sub === undefined) throw new InvalidTokenError("Unknown token");
  const expiresAt = Math.floor(Date.now() / 1_000) + 3_600;
  return { token, clientId: "host", scopes: [], expiresAt, extra: { iss: "https://id.example", sub } };
}

/** A real server behind the SDK's own middleware. */
async function listen(): Promise<URL> {
  const { tasks, app } = serveUsersV1(new MemoryTaskStore(), { verifyAccessToken });
  greeter(tasks);
  const http = createServer(app);
  await new Promise<void>((resolve) => {
    http.listen(0, "127.0.0.1", resolve);
  });
  closeLater(async () => {
    http.closeAllConnections();
    http.close();
    await tasks.close({ shutdownGraceMs: 0 });
  });
  return new URL(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`);
}

async function connect(url: URL, token: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1.0.0" });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  closeLater(() => client.close());
  return client;
}

/** Everything that a client can ask about a task, as one text without the id. */
async function everything(client: Client, taskId: string): Promise<string> {
  const methods = taskMethods(client).map((method) =>
    method(taskId).catch((error: Error) => ({ error: error.message })),
  );
  const calls = ["durable_task_get", "durable_task_respond", "durable_task_cancel"].map((name) =>
    client.callTool({ name, arguments: { taskId, response: "Eve" } }),
  );
  return JSON.stringify(await Promise.all([...methods, ...calls])).replaceAll(taskId, "ID");
}

test("two users behind the bearer auth of SDK v1: a task is its owner's alone, whatever token she comes with", async () => {
  const url = await listen();
  const ada = await connect(url, "ada-1");
  const { taskId } = await callAsTask(ada, "greet");
  const eve = await connect(url, "eve");
  expect(await everything(eve, taskId), "byte for byte like an unknown one").toBe(
    await everything(eve, never),
  );
  const later = await connect(url, "ada-2");
  const args = { taskId, response: "Ada" };
  await later.callTool({ name: "durable_task_get", arguments: { taskId, waitSeconds: 5 } });
  await later.callTool({ name: "durable_task_respond", arguments: args });
  const result = await later.experimental.tasks.getTaskResult(taskId, CallToolResultSchema);
  expect(JSON.stringify(result.content)).toContain("Ada");
});

test("without a token, and with a wrong one, nothing is served", async () => {
  const url = await listen();
  for (const headers of [new Headers(), new Headers({ authorization: "Bearer wrong" })]) {
    const response = await fetch(url, { method: "POST", headers });
    expect(response.status).toBe(401);
  }
  await expect(connect(url, "wrong")).rejects.toThrow();
});
