/*
 * Walks through a report as a model would, from tool texts alone. Every step is printed and asserted; the exit code is
 * not 0 when one differs. The client is the official one, and declares nothing.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { nextCall, type ToolCall } from "./scripted-model.ts";

const dir = await mkdtemp(join(tmpdir(), "longjobs-report-"));
const client = new Client({ name: "scripted-model", version: "1.0.0" });
const calls: string[] = [];
const progress: string[] = [];

try {
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [fileURLToPath(new URL("server.ts", import.meta.url))],
      env: { TASKS_DIR: dir, SECTION_MS: "700" },
    }),
  );
  const { tools } = await client.listTools();
  assert.deepEqual(
    tools.map(({ name }) => name),
    ["write_report", "durable_task_get", "durable_task_respond", "durable_task_cancel"],
  );

  const answers = ["sarcastic", "Friendly"];
  let next: ToolCall | undefined = {
    name: "write_report",
    arguments: { topic: "Tides", subjects: ["The moon", "The sea"] },
  };
  let text = "";
  while (next !== undefined) {
    assert.ok(
      calls.length < 10,
      `A model needs at most 10 calls, and this one has made ${calls.join(", ")}.`,
    );
    text = await call(next);
    next = nextCall(
      text,
      next,
      () => answers.shift() ?? assert.fail("There is one question, asked twice at most."),
    );
  }

  assert.equal(
    text,
    "# Tides\n## Introduction\n(friendly from here on)\n## The moon\n## The sea\n## Summary",
  );
  assert.deepEqual(answers, [], "Both answers were needed: the first one is no choice.");
  assert.equal(calls[0], "write_report");
  assert.equal(calls.filter((name) => name === "write_report").length, 1, "The work ran once.");
  assert.ok(progress.includes("Writing Summary"), "The progress of the work came while a call waited.");
} finally {
  await client.close();
}
await rm(dir, { recursive: true });
console.log(`\nThe report is there after ${calls.length} calls.`);

async function call({ name, arguments: args }: ToolCall): Promise<string> {
  calls.push(name);
  console.log(`\n> ${name} ${JSON.stringify(args)}`);
  const onprogress = ({ message }: { readonly message?: string }): void => {
    progress.push(message ?? "");
    console.log(`  … ${message}`);
  };
  const { content } = await client.callTool({ name, arguments: args }, { onprogress });
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  console.log(text);
  return text;
}
