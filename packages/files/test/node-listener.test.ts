import { once } from "node:events";
import { connect } from "node:net";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { expect, test } from "vitest";

import { someBytes } from "./disk/support/bytes.ts";
import { answerOf } from "./support/doors.ts";
import { patch, serveFiles } from "./support/http.ts";
import { openUpload, statusOf } from "./support/uploads.ts";

/** Sends text as it is, and resolves to everything that comes back. */
async function sendRaw(url: string, text: string): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let received = "";
  socket.setEncoding("latin1");
  socket.on("data", (piece: string) => {
    received += piece;
  });
  socket.on("error", () => undefined);
  socket.write(text);
  await once(socket, "close");
  return received;
}

test.each([
  "GET // HTTP/1.1",
  "GET //evil.example/files HTTP/1.1",
  "TRACE /files HTTP/1.1",
  "PROPFIND /files HTTP/1.1",
  "GET http://evil.example/files HTTP/1.1",
  "GET /files/%E0%A4%A HTTP/1.1",
  "GET /files/../files HTTP/1.1",
])("%s is a 404 with an envelope, and the server lives", async (line) => {
  const { baseUrl } = await serveFiles();
  const received = await sendRaw(baseUrl, `${line}\r\nHost: x\r\nConnection: close\r\n\r\n`);
  expect(received).toMatch(/^HTTP\/1\.1 404 /);
  expect(received).toContain('"code":"unknown_transfer"');
  expect((await fetch(baseUrl, { method: "OPTIONS" })).status).toBe(204);
});

test("a body that is cut short keeps what came, and the transfer goes on there", async () => {
  const { door } = await serveFiles();
  const id = await openUpload(door, { size: 1_000 });
  const url = new URL(String((await statusOf(door, id))["uploadUrl"]));
  const socket = connect(Number(url.port), url.hostname);
  socket.on("error", () => undefined);
  socket.write(
    `PATCH ${url.pathname}${url.search} HTTP/1.1\r\nHost: x\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\n` +
      "Content-Type: application/offset+octet-stream\r\nContent-Length: 1000\r\n\r\n",
  );
  const bytes = someBytes(1_000);
  socket.write(bytes.subarray(0, 400));
  const offset = async () => (await statusOf(door, id))["offset"];
  await expect.poll(offset, { timeout: 10_000 }).toBe(400);
  socket.destroy();
  await expect
    .poll(async () => (await patch(url.href, 400, bytes.subarray(400))).status, { timeout: 10_000 })
    .toBe(204);
  expect(await offset()).toBe(1_000);
});

test("a client that goes away in the middle of a download leaves nothing open", async () => {
  const { box, door } = await serveFiles();
  await writeFile(join(box, "large"), Buffer.alloc(64 * 1024 * 1024));
  const opened = await answerOf(door.call("file_transfer_open", { direction: "download", path: "large" }));
  const { readdir, readlink } = await import("node:fs/promises");
  const openFiles = async (): Promise<number> => {
    const fds = await readdir("/proc/self/fd");
    const links = await Promise.all(fds.map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
    return links.filter((link) => link.endsWith("/large")).length;
  };
  const controller = new AbortController();
  const response = await fetch(String(opened["downloadUrl"]), { signal: controller.signal });
  await response.body?.getReader().read();
  controller.abort();
  await expect.poll(openFiles, { timeout: 10_000 }).toBe(0);
});
