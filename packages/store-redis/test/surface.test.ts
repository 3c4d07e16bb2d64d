import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the package exports exactly this", async () => {
  expect(Object.keys(await import("../src/index.ts")).toSorted()).toEqual(["RedisTaskStore"]);
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    exports: object;
  };
  expect(Object.keys(manifest.exports)).toEqual([".", "./package.json"]);
});

test("the built declarations name no type of the driver, and the built code does not import it", () => {
  for (const file of ["index.d.ts", "index.js"]) {
    const text = readFileSync(new URL(`../dist/${file}`, import.meta.url), "utf8");
    expect(text).not.toMatch(/(?:from|import\() ?["']ioredis/);
  }
});
