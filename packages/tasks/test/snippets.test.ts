import { execFile, spawn } from "node:child_process";
import { copyFile, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";

import { afterEach, beforeEach, expect, test } from "vitest";

import { modernFrame } from "./support/frames.ts";
import { routingHeaders } from "./support/http-door.ts";
import type { WireMessage } from "./support/wire.ts";

const files = [
  new URL("snippets/server.ts", import.meta.url),
  new URL("snippets/client.ts", import.meta.url),
  new URL("snippets/http-server.ts", import.meta.url),
  new URL("snippets/server-v1.ts", import.meta.url),
  new URL("snippets/client-v1.ts", import.meta.url),
];
const packages = [
  "@longjobs/store-wal",
  "@modelcontextprotocol/client",
  "@modelcontextprotocol/node",
  "@modelcontextprotocol/sdk",
  "@modelcontextprotocol/server",
  "zod",
];
let folder = "";

/** A folder as the guide's reader has it: the files side by side, and the packages installed. */
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "longjobs-guide-"));
  const root = join(import.meta.dirname, "..");
  await install("@longjobs/tasks", root);
  for (const name of packages) await install(name, join(root, "node_modules", name));
  for (const file of files) await copyFile(file, join(folder, basename(file.pathname)));
});

async function install(name: string, from: string): Promise<void> {
  const link = join(folder, "node_modules", name);
  await mkdir(dirname(link), { recursive: true });
  await symlink(from, link);
}

afterEach(() => rm(folder, { recursive: true }));

test("the stdio server of the guide answers its client as the guide says", async () => {
  const env = { ...process.env, PATH: `${join(process.execPath, "..")}:${process.env["PATH"]}` };
  const { stdout } = await promisify(execFile)(process.execPath, ["client.ts"], { cwd: folder, env });
  expect(stdout).toBe(
    "Counting 1 of 3\nCounting 2 of 3\nCounting 3 of 3\n[ { type: 'text', text: 'Counted to 3.' } ]\n",
  );
});

test("the SDK v1 server of its guide answers its client as the guide says", async () => {
  const env = { ...process.env, PATH: `${join(process.execPath, "..")}:${process.env["PATH"]}` };
  const { stdout } = await promisify(execFile)(process.execPath, ["client-v1.ts"], { cwd: folder, env });
  expect(stdout).toBe("working\nFor whom?\n[ { type: 'text', text: 'Published for the team.' } ]\n");
});

test("the HTTP server of the guide asks, takes an answer, and publishes", async () => {
  const server = spawn(process.execPath, ["http-server.ts"], {
    cwd: folder,
    env: { ...process.env, PORT: "0" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise((resolve) => {
    server.once("exit", resolve);
  });
  try {
    const url = await new Promise<string>((resolve, reject) => {
      server.stdout.once("data", (line: Buffer) => resolve(line.toString().trim()));
      server.once("exit", (code) => reject(new Error(`The server ended with ${code}.`)));
    });
    const send = async (method: string, params: object): Promise<WireMessage["result"]> => {
      const body = JSON.stringify(modernFrame(method, params));
      const response = await fetch(url, { method: "POST", headers: routingHeaders(method, params), body });
      return ((await response.json()) as WireMessage).result;
    };
    const handle = await send("tools/call", { name: "publish", arguments: { report: "Tides" } });
    const taskId = handle?.taskId;
    await expect.poll(async () => (await send("tasks/get", { taskId }))?.status).toBe("input_required");
    const where = { action: "accept", content: { place: "the notice board" } };
    await send("tasks/update", { taskId, inputResponses: { where } });
    await expect
      .poll(async () => (await send("tasks/get", { taskId }))?.result?.content)
      .toEqual([{ type: "text", text: "Tides is published at the notice board." }]);
  } finally {
    server.kill("SIGKILL");
    await ended;
  }
});
