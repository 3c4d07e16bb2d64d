/*
 * Walks through a report as a model would, from tool texts alone, with the server of each SDK. Every step is printed and asserted; the
 * exit code is not 0 when one differs. The client is the official one, and declares nothing.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { nextCall, type ToolCall } from "./scripted-model.ts";

const tools = ["write_report", "durable_task_get", "durable_task_respond", "durable_task_cancel"];
const report = "# Tides\n## Introduction\n(friendly from here on)\n## The moon\n## The sea\n## Summary";

await walkThrough("server.ts");
await walkThrough("server-v1.ts");

async function walkThrough(server: string): Promise<void> {
  console.log(`\n${server}`);
  const dir = await mkdtemp(join(tmpdir(), "longjobs-report-"));
  const client = new Client({ name: "scripted-model", version: "1.0.0" });
  try {
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [fileURLToPath(new URL(server, import.meta.url))],
        env: { TASKS_DIR: dir, SECTION_MS: "700" },
      }),
    );
    const listed = (await client.listTools()).tools.map(({ name }) => name);
    assert.deepEqual(listed.toSorted(), tools.toSorted());
    await writeReport(client);
  } finally {
    await client.close();
  }
  await rm(dir, { recursive: true });
}

async function writeReport(client: Client): Promise<void> {
  const calls: string[] = [];
  const progress: string[] = [];
  const answers = ["sarcastic", "Friendly"];
  const answer = (): string => answers.shift() ?? assert.fail("There is one question, asked twice at most.");
  let text = "";
  let next: ToolCall | undefined = {
    name: "write_report",
    arguments: { topic: "Tides", subjects: ["The moon", "The sea"] },
  };
  while (next !== undefined) {
    assert.ok(calls.length < 10, `A model needs at most 10 calls, not ${calls.join(", ")}.`);
    calls.push(next.name);
    text = await callTool(client, next, progress);
    next = nextCall(text, next, answer);
  }
  assert.equal(text, report);
  assert.deepEqual(answers, [], "Both answers were needed: the first one is no choice.");
  assert.equal(calls.filter((name) => name === "write_report").length, 1, "The work ran once.");
  assert.ok(progress.includes("Writing Summary"), "The progress of the work came while a call waited.");
  console.log(`\nThe report is there after ${calls.length} calls.`);
}

async function callTool(client: Client, call: ToolCall, progress: string[]): Promise<string> {
  console.log(`\n> ${call.name} ${JSON.stringify(call.arguments)}`);
  const onprogress = ({ message }: { readonly message?: string }): void => {
    progress.push(message ?? "");
    console.log(`  … ${message}`);
  };
  const { content } = await client.callTool({ ...call }, { onprogress });
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  console.log(text);
  return text;
}
