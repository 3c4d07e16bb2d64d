import { existsSync, writeFileSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mortalFiles } from "./support/crash-store.ts";
import { quickTempDir } from "./support/temp-dir.ts";

test("what a killed process had begun has ended before anybody looks at its disk", async () => {
  const dir = quickTempDir();
  const mortal = mortalFiles();
  const { files } = mortal;
  for (let index = 0; index < 1_000; index += 1) writeFileSync(join(dir, `${index}`), "");
  const heard: string[] = [];
  // Enough of them keep the threads busy that the last one waits for its turn.
  for (let index = 0; index < 50; index += 1) void files.list(dir).then(() => heard.push("list"));
  void files.unlink(join(dir, "0")).then(() => heard.push("unlink"));
  void files.unlink(join(dir, "absent")).catch(() => heard.push("error"));
  await mortal.die();
  expect(existsSync(join(dir, "0"))).toBe(false);

  void files.unlink(join(dir, "1"));
  await readdir(dir);
  expect(existsSync(join(dir, "1"))).toBe(true);
  expect(heard).toEqual([]);
});
