/*
 * The server of the demo: four tools over a write-ahead log in `DIR`, on `PORT`. Each change of a task is a
 * line on standard output, so that the demo knows when to kill it.
 */
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { WalTaskStore } from "@longjobs/store-wal";
import { createTasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { z } from "zod";
import { closeOnSignal } from "./close-on-signal.ts";

const dir = process.env["DIR"] ?? "./tasks";
const port = Number(process.env["PORT"] ?? 0);

const store = await WalTaskStore.open({ dir });
// One user on one machine: everyone who can reach this server shares its tasks.
const tasks = createTasks({ store, scope: null, pollIntervalMs: 200 });
tasks.lifecycle.onTaskChanged(({ taskId, status, statusMessage }) =>
  say({ event: "task", taskId, status, statusMessage }),
);

tasks.taskTool(
  "build_report",
  { description: "Builds a report of a few sections.", inputSchema: z.object({ topic: z.string() }) },
  async ({ topic }, task) => {
    const sections = 6;
    for (let done = 1; done <= sections; done += 1) {
      await delay(500, undefined, { signal: task.signal });
      await task.progress({ message: `Section ${done}`, done, total: sections });
    }
    return { content: [{ type: "text", text: `The report on ${topic} has ${sections} sections.` }] };
  },
);

tasks.taskTool(
  "crawl_site",
  {
    description: "Reads the pages of a site and counts their words.",
    inputSchema: z.object({ url: z.string(), pages: z.number().int() }),
    // Reading a page twice does no harm, so the work may begin again: after the last page it has counted.
    onInterrupted: "resume",
  },
  async ({ url, pages }, task) => {
    let { page, words } = (task.checkpoint ?? { page: 0, words: 0 }) as { page: number; words: number };
    while (page < pages) {
      const response = await fetch(`${url}/page/${page + 1}`, { signal: task.signal });
      words += (await response.text()).split(/\s+/).length;
      page += 1;
      await task.saveCheckpoint({ page, words });
      await task.progress({ message: `Page ${page}`, done: page, total: pages });
    }
    return { content: [{ type: "text", text: `${pages} pages, ${words} words.` }] };
  },
);

tasks.taskTool(
  "publish_report",
  { description: "Asks where to publish a report.", onInterrupted: "resume" },
  async (_args, task) => {
    const place = await task.ask({ prompt: "Where shall the report be published?" });
    await delay(1_000, undefined, { signal: task.signal });
    return { content: [{ type: "text", text: `Published on ${place}.` }] };
  },
);

const handler = createMcpHandler(() => {
  const mcp = new McpServer({ name: "longjobs-crash-recovery", version: "1.0.0" });
  tasks.attach(mcp);
  return mcp;
});

const serveMcp = toNodeHandler(handler);
const server = createServer((request, response) => void serveMcp(request, response));
closeOnSignal(server, tasks, store);
server.listen(port, "127.0.0.1", () => {
  const address = server.address();
  say({ event: "listening", port: typeof address === "object" ? address?.port : port });
});

function say(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
