import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";

import { MemoryTaskStore } from "@longjobs/core";
import { McpServer } from "@modelcontextprotocol/server";
import { describe, expect, test } from "vitest";

import { createFiles, withFileTransfer, type FilesOptions } from "../src/index.ts";
import { openDoor } from "./support/doors.ts";
import { makeDir, startFiles } from "./support/started-files.ts";

const good: FilesOptions = {
  store: new MemoryTaskStore(),
  staging: "/srv/staging",
  roots: { box: { path: "/srv/box", write: true } },
};
const http = { baseUrl: "https://app.example/files" };

describe("every option is checked when the object is made", () => {
  test("good ones are taken", async () => {
    for (const options of [
      good,
      { ...good, http },
      {
        ...good,
        http: { ...http, secrets: ["s".repeat(32)], corsOrigins: ["https://a.example"], path: "/x" },
      },
      { ...good, staging: { dir: "/srv/staging", flush: true } },
      {
        ...good,
        limits: { maxFileBytes: null, maxScopeBytes: null, maxScopeFiles: null, maxOpenTransfers: null },
      },
      { ...good, sweepIntervalMs: null, scope: null, toolPrefix: "files" },
    ] satisfies FilesOptions[])
      await createFiles(options).close();
  });

  test.each<[string, object]>([
    ["no store", { store: undefined }],
    ["a store without update", { store: { create: () => 0, get: () => 0, sweep: () => 0 } }],
    ["no staging", { staging: undefined }],
    ["relative staging", { staging: "staging" }],
    ["a staging that is none", { staging: {} }],
    ["flush that is no boolean", { staging: { dir: "/srv/staging", flush: 1 } }],
    ["no roots", { roots: {} }],
    ["a relative root", { roots: { box: { path: "box" } } }],
    ["a root with a misspelt option", { roots: { box: { path: "/srv/box", writeable: true } } }],
    ["staging inside of a root", { staging: "/srv/box/staging" }],
    ["staging that is a root", { staging: "/srv/box" }],
    ["a root inside of the staging", { roots: { box: { path: "/srv/staging/box" } } }],
    ["a root that is everything", { roots: { all: { path: "/" } } }],
    ["state inside of a root", { stateDirs: ["/srv/box/state"] }],
    ["relative state", { stateDirs: ["state"] }],
    ["a base URL that is none", { http: { baseUrl: "/files" } }],
    ["a base URL with a query", { http: { baseUrl: "https://app.example/files?x=1" } }],
    ["a base URL of another scheme", { http: { baseUrl: "ftp://app.example/" } }],
    ["a path without a slash", { http: { ...http, path: "files" } }],
    ["a short secret", { http: { ...http, secrets: ["short"] } }],
    ["origins that are none", { http: { ...http, corsOrigins: "https://a.example" } }],
    ["a prefix with a dash", { toolPrefix: "file-transfer" }],
    ["a scope that is a text", { scope: "ada" }],
    ["a message limit that nothing fits", { maxMessageBytes: 1_000 }],
    ["a lease of no time", { leaseMs: 0 }],
    ["a negative time", { idleMs: -1 }],
    ["a fractional time", { retentionMs: 1.5 }],
    ["a time that is no number", { maxLifetimeMs: "1 day" }],
    ["a sweep without pause", { sweepIntervalMs: 0 }],
    ["a sweep of NaN", { sweepIntervalMs: Number.NaN }],
    ["a negative limit", { limits: { maxFileBytes: -1 } }],
  ])("%s is refused", (_name, wrong) => {
    expect(() => createFiles({ ...good, ...wrong })).toThrow(
      expect.objectContaining({ name: expect.stringMatching(/^(?:Type|Range)Error$/) as string }),
    );
  });
});

// CASES part 2, files: "shipped layout leaks the session store".
test("staging that a link puts into a root is refused when files are opened, and by every call", async () => {
  const dir = await makeDir();
  await mkdir(join(dir, "box/inner"), { recursive: true });
  await symlink(join(dir, "box/inner"), join(dir, "staging"));
  const errors: unknown[] = [];
  await using files = createFiles({
    store: new MemoryTaskStore(),
    staging: join(dir, "staging"),
    roots: { box: { path: join(dir, "box"), write: true } },
    http,
    scope: null,
    onError: (error) => errors.push(error),
  });
  await expect(files.open()).rejects.toThrow(TypeError);
  const door = await openDoor(files);
  const answer = await door.call("file_transfer_open", { direction: "download", path: "inner/x" });
  expect(answer.isError).toBe(true);
  expect(answer.text).not.toContain(dir);
  expect((await files.fetch(new Request(`${http.baseUrl}/x`))).status).toBe(500);
  expect(errors.length).toBe(2);
});

test("a server is attached once, and before that it must be one", async () => {
  const { files } = await startFiles();
  const server = new McpServer({ name: "test", version: "1.0.0" });
  expect(files.attach(server)).toBe(server);
  expect(() => files.attach(server)).toThrow("already");
  for (const wrong of [{}, null, undefined, "server", { registerTool: true }])
    expect(() => files.attach(wrong as never)).toThrow(TypeError);
});

test("withFileTransfer is both in one", async () => {
  const server = new McpServer({ name: "test", version: "1.0.0" });
  const files = withFileTransfer(server, good);
  expect(() => files.attach(server)).toThrow("already");
  await files.close();
});

test("without http there is no endpoint, and it says so", async () => {
  const { files } = await startFiles();
  await expect(files.fetch(new Request("https://app.example/"))).rejects.toThrow(TypeError);
  await expect(files.createUploadUrl({ root: "box" })).rejects.toThrow(TypeError);
});

test("a prefix of one's own names the tools, in their texts too", async () => {
  const { files } = await startFiles({ toolPrefix: "blob" });
  const door = await openDoor(files);
  expect((await door.listTools()).map(({ name }) => name)).toContain("blob_open");
  const opened = await door.call("blob_open", { direction: "upload", path: "a" });
  expect(opened.structured["next"]).toContain("blob_write");
  expect(JSON.stringify(await door.listTools())).not.toContain("file_transfer");
});
