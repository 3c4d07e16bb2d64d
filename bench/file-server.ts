/*
 * A server for large files in a process of its own, so that its memory can be told: longjobs, or what it is measured
 * against. Tells its parent where it listens, and how much memory it took when it is asked.
 */
import { createReadStream } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { MemoryTaskStore } from "@longjobs/core";
import { createFiles, toNodeListener } from "@longjobs/files";
import { FileStore } from "@tus/file-store";
import { Server } from "@tus/server";

const [contestant = "", dir = "", fileName = ""] = process.argv.slice(2);

/** What the parent needs to know. */
export interface ServedBench {
  readonly creationUrl: string;
  readonly downloadUrl: string;
}

let listener: RequestListener | undefined;
const server = createServer((request, response) => listener?.(request, response));
await new Promise<void>((resolve) => {
  server.listen(0, "127.0.0.1", resolve);
});
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const served = contestant === "longjobs" ? await serveLongjobs() : await serveBare();
const idleBytes = process.memoryUsage.rss();
process.on("message", () => {
  process.send?.({ extraBytes: process.resourceUsage().maxRSS * 1024 - idleBytes });
});
process.send?.(served);

async function serveLongjobs(): Promise<ServedBench> {
  const files = createFiles({
    store: new MemoryTaskStore(),
    staging: join(dir, "staging"),
    roots: { box: { path: dir + "/box", write: true } },
    http: { baseUrl: `${origin}/files` },
    limits: { maxFileBytes: null, maxScopeBytes: null },
    scope: null,
  });
  listener = toNodeListener(files);
  // The tools without a server around them: only one call is needed.
  const tools = new Map<string, (args: object, context: object) => Promise<unknown>>();
  files.attach({
    server: {},
    registerTool: (
      name: string,
      _config: object,
      call: (args: object, context: object) => Promise<unknown>,
    ) => tools.set(name, call),
  });
  const opened = (await tools.get("file_transfer_open")?.({ direction: "download", path: fileName }, {})) as {
    readonly structuredContent: { readonly downloadUrl: string };
  };
  return {
    creationUrl: await files.createUploadUrl({ root: "box" }),
    downloadUrl: opened.structuredContent.downloadUrl,
  };
}

async function serveBare(): Promise<ServedBench> {
  const directory = join(dir, "bare");
  await mkdir(directory);
  const tus = new Server({ path: "/tus", datastore: new FileStore({ directory }) });
  const path = join(dir, "box", fileName);
  listener = (request, response) => {
    if (request.method !== "GET") return void tus.handle(request, response);
    void stat(path).then(({ size }) => {
      response.writeHead(200, { "content-length": size });
      return pipeline(createReadStream(path), response);
    });
  };
  return { creationUrl: `${origin}/tus`, downloadUrl: `${origin}/download` };
}
