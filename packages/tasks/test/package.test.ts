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
  const [, types = ""] = /^export type \{([^}]*)\}/m.exec(await built("index.d.ts")) ?? [];
  expect(
    types
      .split(",")
      .map((name) => name.trim())
      .toSorted(),
  ).toEqual([
    "Ask",
    "AttachableServer",
    "Executor",
    "FallbackOptions",
    "PrepareRequest",
    "Prepared",
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
  ]);
});

describe("the built files are neutral", () => {
  test("they import core and the wire schemas, and zod for arguments: no SDK, no built-in module", async () => {
    expect(modulesOf(await built("index.js"))).toEqual([
      "@longjobs/core",
      "@modelcontextprotocol/ext-tasks/core/v2",
      "zod",
    ]);
  });

  test("their declarations name no type of an SDK, and none of zod", async () => {
    const declarations = await built("index.d.ts");
    expect(modulesOf(declarations)).toEqual(["@longjobs/core"]);
    expect(declarations).not.toMatch(/\b(?:NodeJS|Buffer|EventEmitter)\b/);
  });

  test("they use no global of one runtime alone", async () => {
    const code = (await built("index.js")).replaceAll(/\/\*[^]*?\*\/|\/\/.*$/gm, "");
    expect(code).not.toMatch(/\b(?:process|Buffer|__dirname|Deno|Bun|setImmediate)\b/);
  });
});
