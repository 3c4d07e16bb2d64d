import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("the package exports exactly this", async () => {
  expect(Object.keys(await import("../src/index.ts")).toSorted()).toEqual(["PostgresTaskStore"]);
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    exports: object;
  };
  expect(Object.keys(manifest.exports)).toEqual([".", "./package.json"]);
});
