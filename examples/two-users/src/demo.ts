/*
 * Two users of one host, behind the bearer auth of both SDKs. Every step is printed and asserted; the exit code is not 0 when one
 * differs.
 */
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { MemoryTaskStore } from "@longjobs/core";
import { createTasks } from "@longjobs/tasks";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { registerReportTools } from "./report-tools.ts";
import { createServerV1 } from "./server-v1.ts";
import { createServerV2 } from "./server-v2.ts";

const unknownId = "00000000-0000-4000-8000-000000000000";

const tasks = createTasks({ store: new MemoryTaskStore() });
registerReportTools(tasks);
const servers = { v1: createServerV1(tasks), v2: createServerV2(tasks) };
const clients: Client[] = [];

try {
  for (const server of Object.values(servers)) await once(server.listen(0, "127.0.0.1"), "listening");
  await keepsApart("v1", "v2");
  await keepsApart("v2", "v1");
} finally {
  for (const client of clients) await client.close();
  for (const server of Object.values(servers)) server.close();
  await tasks.close();
}
console.log("\nEach user reached their own tasks, and nobody else's.");

/** Ada starts at one server and goes on at the other one; Eve tries both. */
async function keepsApart(first: keyof typeof servers, second: keyof typeof servers): Promise<void> {
  const response = await fetch(urlOf(servers[first]), { method: "POST" });
  assert.equal(response.status, 401);
  say(`SDK ${first}: a call without a token is answered with HTTP 401.`);

  const ada = await connect(first, "ada-laptop");
  const started = await ada.callTool({ name: "write_report", arguments: {} });
  const { taskId } = started.structuredContent as { readonly taskId: string };
  say(`SDK ${first}: Ada starts a report, task ${taskId}.`);

  for (const server of [first, second]) {
    const eve = await connect(server, "eve-laptop");
    for (const name of ["durable_task_get", "durable_task_respond", "durable_task_cancel"]) {
      const ask = async (id: string): Promise<string> => {
        const reply = await eve.callTool({ name, arguments: { taskId: id, response: "everyone" } });
        return JSON.stringify(reply).replaceAll(id, "ID");
      };
      const foreign = await ask(taskId);
      assert.match(foreign, /unknown_task/);
      assert.equal(foreign, await ask(unknownId), "byte for byte like an id that was never given");
    }
    say(`SDK ${server}: Eve, on the same host, is told that there is no such task, whatever she asks.`);
  }

  const phone = await connect(second, "ada-phone");
  const asked = await phone.callTool({
    name: "durable_task_get",
    arguments: { taskId, waitSeconds: 5 },
  });
  assert.match(JSON.stringify(asked), /For whom\?/);
  await phone.callTool({ name: "durable_task_respond", arguments: { taskId, response: "the team" } });
  const done = await phone.callTool({ name: "durable_task_get", arguments: { taskId, waitSeconds: 5 } });
  assert.deepEqual(done.content, [{ type: "text", text: "A report for the team." }]);
  say(`SDK ${second}: Ada, with another token, answers the question and has her report.`);
}

async function connect(server: keyof typeof servers, token: string): Promise<Client> {
  const client = new Client({ name: "the-host", version: "1.0.0" });
  const requestInit = { headers: { authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(urlOf(servers[server]), { requestInit }));
  clients.push(client);
  return client;
}

function urlOf(server: Server): URL {
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

function say(what: string): void {
  console.log(`- ${what}`);
}
