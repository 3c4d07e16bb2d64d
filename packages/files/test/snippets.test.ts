import { spawn } from "node:child_process";
import { copyFile, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";

import { MemoryTaskStore } from "@longjobs/core";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, test } from "vitest";

import { createFiles } from "../src/index.ts";
import { sha256, someBytes } from "./disk/support/bytes.ts";
import { expectSame } from "./support/same-bytes.ts";
import { closeLater } from "./support/doors.ts";
import { patch } from "./support/http.ts";
import { countLines, grantUpload } from "./snippets/upload-url.ts";
import { makeDir } from "./support/started-files.ts";

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  await new Promise((resolve) => {
    server.close(resolve);
  });
  return address !== null && typeof address === "object" ? address.port : 0;
}

test("the other snippets of the page do what it says", async () => {
  const dir = await makeDir();
  await mkdir(join(dir, "inbox"));
  await writeFile(join(dir, "inbox/three"), "a\nb\nc\n");
  await using files = createFiles({
    store: new MemoryTaskStore(),
    staging: join(dir, "staging"),
    roots: { inbox: { path: join(dir, "inbox"), write: true } },
    http: { baseUrl: "https://app.example/files" },
    scope: null,
  });
  expect(await countLines(files, "three")).toBe(3);
  expect(await grantUpload(files, "ada")).toMatch(/^https:\/\/app\.example\/files\?grant=/);
});

test("the server of the page takes a file by URL and publishes it, against the built packages", async () => {
  const folder = await makeDir();
  const root = join(import.meta.dirname, "..");
  const install = async (name: string, from: string): Promise<void> => {
    const link = join(folder, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(from, link);
  };
  await install("@longjobs/files", root);
  for (const name of ["@longjobs/store-wal", "@modelcontextprotocol/node", "@modelcontextprotocol/server"])
    await install(name, join(root, "node_modules", name));
  await copyFile(join(import.meta.dirname, "snippets/http-server.ts"), join(folder, "server.ts"));
  await mkdir(join(folder, "inbox"));
  const port = await freePort();
  const server = spawn(process.execPath, ["server.ts"], {
    cwd: folder,
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "inherit", "inherit"],
  });
  closeLater(() => {
    server.kill("SIGKILL");
  });
  const client = new Client({ name: "test", version: "1.0.0" });
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  await expect
    .poll(
      () =>
        fetch(url).then(
          () => true,
          () => false,
        ),
      { timeout: 20_000 },
    )
    .toBe(true);
  await client.connect(new StreamableHTTPClientTransport(url));
  closeLater(() => client.close());
  const call = async (name: string, args: object): Promise<Record<string, unknown>> => {
    const result = await client.callTool({ name, arguments: { ...args } });
    return result.structuredContent as Record<string, unknown>;
  };
  const bytes = someBytes(100_000);
  const wish = { direction: "upload", path: "a/data.bin", size: bytes.length, sha256: sha256(bytes) };
  const { transferId, uploadUrl } = await call("file_transfer_open", wish);
  expect((await patch(String(uploadUrl), 0, bytes)).status).toBe(204);
  expect(await call("file_transfer_commit", { transferId })).toMatchObject({ status: "committed" });
  expectSame(await readFile(join(folder, "inbox/a/data.bin")), bytes);
});
