import { readFile } from "node:fs/promises";

import { describe, expect, test } from "vitest";

import * as surface from "../src/index.ts";

function built(file: string): Promise<string> {
  return readFile(new URL(`../dist/${file}`, import.meta.url), "utf8");
}

/** The modules that a built file names, in imports of any form. */
function modulesOf(source: string): string[] {
  const found = source.matchAll(/(?:from|import|require)\s*\(?\s*["']([^"']+)["']/g);
  return [...new Set(Array.from(found, ([, name = ""]) => name))].toSorted();
}

test("the public surface is this, and nothing else", async () => {
  expect(Object.keys(surface).toSorted()).toEqual(["asSdkTaskStore", "createTasks", "withTasks"]);
  const source = await readFile(new URL("../src/index.ts", import.meta.url), "utf8");
  const types = Array.from(source.matchAll(/export type \{([^}]*)\}/g), ([, names = ""]) => names.split(","));
  expect(
    types
      .flat()
      .map((name) => name.trim())
      .filter((name) => name !== "")
      .toSorted(),
  ).toEqual([
    "Ask",
    "AttachableServer",
    "Executor",
    "FallbackOptions",
    "PrepareRequest",
    "Prepared",
    "PushOptions",
    "SchemaOutput",
    "ScopeOption",
    "SdkTaskMachinery",
    "SdkTaskMessageQueue",
    "SdkTaskStore",
    "SdkTaskStoreOptions",
    "StandardSchema",
    "TaskToolConfig",
    "Tasks",
    "TasksOptions",
    "ToolHandler",
    "ToolResult",
    "ToolSchema",
    "ToolTask",
    "WrappableHandler",
    "WrappableTransport",
  ]);
});

test("the test kit has an entry of its own, and this is in it", async () => {
  expect(Object.keys(await import("../src/testing.ts")).toSorted()).toEqual(["TaskHarness", "TestClock"]);
  const manifest = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as {
    exports: Record<string, unknown>;
  };
  expect(Object.keys(manifest.exports)).toEqual([".", "./testing", "./package.json"]);
});

/** An entry with the files that it shares with others. */
async function withChunks(entry: string): Promise<string> {
  const source = await built(entry);
  const chunks = modulesOf(source).filter((name) => name.startsWith("./"));
  return [
    source,
    ...(await Promise.all(
      chunks.map((chunk) =>
        built(entry.endsWith(".d.ts") ? chunk.slice(2).replace(/\.js$/, ".d.ts") : chunk.slice(2)),
      ),
    )),
  ].join("\n");
}

describe("the built files are neutral", () => {
  test("they import core and the wire schemas, and zod for arguments: no SDK, no built-in module", async () => {
    expect(modulesOf(await withChunks("index.js")).filter((name) => !name.startsWith("./"))).toEqual([
      "@longjobs/core",
      "@modelcontextprotocol/ext-tasks/core/v2",
      "zod",
    ]);
  });

  test("their declarations name no type of an SDK, and none of zod", async () => {
    const declarations = `${await withChunks("index.d.ts")}${await withChunks("testing.d.ts")}`;
    expect(modulesOf(declarations).filter((name) => !name.startsWith("./"))).toEqual(["@longjobs/core"]);
    expect(declarations).not.toMatch(/\b(?:NodeJS|Buffer|EventEmitter)\b/);
  });

  test("they use no global of one runtime alone", async () => {
    const code = `${await withChunks("index.js")}${await withChunks("testing.js")}`.replaceAll(
      /\/\*[^]*?\*\/|\/\/.*$/gm,
      "",
    );
    expect(code).not.toMatch(/\b(?:process|Buffer|__dirname|Deno|Bun|setImmediate)\b/);
  });
});
