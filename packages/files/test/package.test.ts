import { readFile } from "node:fs/promises";

import { expect, test } from "vitest";

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
  expect(Object.keys(surface).toSorted()).toEqual(["createFiles", "toNodeListener", "withFileTransfer"]);
  const [, types = ""] = /^export type \{([^}]*)\}/m.exec(await built("index.d.ts")) ?? [];
  expect(
    types
      .split(",")
      .map((name) => name.trim())
      .toSorted(),
  ).toEqual([
    "FetchOptions",
    "Files",
    "FilesHttpOptions",
    "FilesLimits",
    "FilesOptions",
    "ForeignStagingStore",
    "ForeignUpload",
    "LocalStagingOptions",
    "McpServerLike",
    "NodeRequestLike",
    "NodeResponseLike",
    "OpenedFile",
    "PublishPolicy",
    "RootOptions",
    "StagingAbilities",
    "SweptTransfers",
    "UploadGrant",
    "WebEndpoint",
  ]);
});

test("the built files import no SDK, and their declarations name no type of another package but core", async () => {
  const modules = modulesOf(await built("index.js")).filter((name) => /^@|^\w+$/.test(name));
  expect(modules).toEqual(["@longjobs/core", "@tus/server", "zod"]);
  expect(modulesOf(await built("index.d.ts"))).toEqual(["@longjobs/core"]);
});

// CASES part 2, files: "sync fs calls on the request path".
test("no call of the built files blocks the process", async () => {
  expect(await built("index.js")).not.toMatch(
    /\b(?:open|read|write|stat|lstat|fstat|unlink|rename|link|mkdir|exists|realpath|readdir|fsync|pbkdf2|scrypt|exec)Sync\b/,
  );
});

test("the package has one entry", async () => {
  const manifest = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as {
    exports: Record<string, unknown>;
  };
  expect(Object.keys(manifest.exports)).toEqual([".", "./package.json"]);
  expect(manifest.exports["."]).toEqual({ types: "./dist/index.d.ts", default: "./dist/index.js" });
});
