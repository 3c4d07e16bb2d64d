import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

test("the report of the guide's store ends with the line that the guide shows", async () => {
  const example = fileURLToPath(new URL("report/child.ts", import.meta.url));
  const { status, stdout } = spawnSync(process.execPath, [example], { encoding: "utf8" });
  const guide = await readFile(
    new URL("../../../docs/guide/write-your-own-store.md", import.meta.url),
    "utf8",
  );
  expect(status).toBe(0);
  expect(guide).toContain(stdout.trimEnd().split("\n").at(-1));
});
