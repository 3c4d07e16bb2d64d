/*
 * Sends a large CSV file to the server, with an upload that is killed half-way and resumed, has it summed up as a durable task,
 * and downloads the result in two pieces. Every step is printed and asserted; the exit code is not 0 when one differs.
 */
import assert from "node:assert/strict";
import { fork, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { writeSales } from "./sales.ts";

const megabytes = Number(process.env["DEMO_MB"] ?? 300);
const dir = await mkdtemp(join(tmpdir(), "longjobs-files-"));
const source = join(dir, "sales.csv");
const port = await freePort();
const children: ChildProcess[] = [];

try {
  await runDemo();
  console.log("\nAll as expected.");
} finally {
  for (const child of children) child.kill("SIGKILL");
  await rm(dir, { recursive: true, force: true });
}

async function runDemo(): Promise<void> {
  console.log(`Writing ${megabytes} MB of sales …`);
  const sales = await writeSales(source, megabytes * 1_000_000);
  const server = start("server.ts", [], { DATA_DIR: join(dir, "data"), PORT: String(port) });
  await once(server, "message");
  const client = new Client({ name: "file-exchange-demo", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`)));

  const opened = await call(client, "file_transfer_open", {
    direction: "upload",
    root: "inbox",
    path: "2026/sales.csv",
    size: sales.size,
    sha256: sales.sha256,
  });
  const uploadUrl = text(opened["uploadUrl"]);
  await uploadWithKill(uploadUrl, sales.size);
  const committed = await call(client, "file_transfer_commit", { transferId: opened["transferId"] });
  assert.deepEqual([committed["status"], committed["sha256"]], ["committed", sales.sha256]);
  console.log(`Published as ${text(committed["path"])}, sha256 verified.`);

  const result = await sumUp(client, text(committed["path"]));
  const down = await call(client, "file_transfer_open", {
    direction: "download",
    root: "outbox",
    path: result,
  });
  const bytes = await downloadInPieces(text(down["downloadUrl"]));
  assert.equal(createHash("sha256").update(bytes).digest("hex"), down["sha256"]);
  assert.deepEqual(JSON.parse(bytes.toString()), { rows: sales.rows, totals: sales.totals });
  console.log(`Downloaded ${result}: ${sales.rows} rows, the totals are right.`);
  await client.close();
}

/** The first client is killed half-way, as a host that crashes is; the second knows nothing but the file and the URL. */
async function uploadWithKill(url: string, size: number): Promise<void> {
  const first = start("upload-client.ts", [source, url]);
  let sent = 0;
  first.on("message", (said: { readonly sent: number }) => {
    ({ sent } = said);
    show("uploading", sent, size);
    if (sent >= size / 2) first.kill("SIGKILL");
  });
  await once(first, "exit");
  assert.ok(sent >= size / 2 && sent < size, "The client was killed in the middle.");
  console.log(`\n  killed at ${percent(sent, size)}; starting again`);
  const second = start("upload-client.ts", [source, url]);
  let resumedAt: number | undefined;
  second.on("message", (said: { readonly first: number; readonly sent: number }) => {
    resumedAt ??= said.first;
    show("resuming ", said.sent, size);
  });
  const [code] = (await once(second, "exit")) as [number];
  console.log("");
  assert.equal(code, 0);
  assert.ok(resumedAt !== undefined && resumedAt >= sent, "Nothing that was acknowledged is sent again.");
}

/** As a model does it that has no tasks: by the texts of the fallback tools. */
async function sumUp(client: Client, path: string): Promise<string> {
  const started = await call(client, "sum_up_sales", { path });
  const { taskId } = started;
  for (let waits = 0; ; waits += 1) {
    assert.ok(waits < 100, "The task comes to an end.");
    const { structuredContent, content } = await client.callTool({
      name: "durable_task_get",
      arguments: { taskId, waitSeconds: 2 },
    });
    const task = structuredContent as Record<string, unknown>;
    const { done = 0, total = 1 } = (task["progress"] ?? {}) as { done?: number; total?: number };
    if (task["status"] === "working") {
      show("summing up", done, total);
      continue;
    }
    assert.equal(task["status"], "completed", JSON.stringify(task));
    const said = (content[0] as { readonly text?: string } | undefined)?.text ?? "";
    console.log(`\n  ${said}`);
    return /outbox: (\S+)$/.exec(said)?.[1] ?? assert.fail("The result is a file.");
  }
}

/** Half of it, then the rest, if it is still the same file. */
async function downloadInPieces(url: string): Promise<Buffer> {
  const head = await fetch(url, { method: "HEAD" });
  const [size, etag] = [Number(head.headers.get("content-length")), text(head.headers.get("etag"))];
  const middle = Math.floor(size / 2);
  const first = await fetch(url, { headers: { range: `bytes=0-${middle - 1}` } });
  const rest = await fetch(url, { headers: { range: `bytes=${middle}-`, "if-range": etag } });
  assert.deepEqual([first.status, rest.status], [206, 206]);
  return Buffer.concat([Buffer.from(await first.arrayBuffer()), Buffer.from(await rest.arrayBuffer())]);
}

async function call(client: Client, name: string, args: object): Promise<Record<string, unknown>> {
  const { structuredContent, content, isError } = await client.callTool({ name, arguments: { ...args } });
  assert.notEqual(isError, true, JSON.stringify(content));
  return (structuredContent ?? {}) as Record<string, unknown>;
}

function start(file: string, args: readonly string[], env: Record<string, string> = {}): ChildProcess {
  const child = fork(join(import.meta.dirname, file), [...args], { env: { ...process.env, ...env } });
  children.push(child);
  return child;
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  return address !== null && typeof address === "object" ? address.port : 0;
}

function show(what: string, done: number, total: number): void {
  process.stdout.write(`\r  ${what} ${percent(done, total)} `);
}

function percent(done: number, total: number): string {
  return `${Math.floor((100 * done) / total)} %`;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : assert.fail(`Not a text: ${JSON.stringify(value)}`);
}
