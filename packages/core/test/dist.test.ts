import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { beforeAll, describe, expect, test } from "vitest";

import * as source from "../src/index.ts";

const packageUrl = new URL("../", import.meta.url);
const distUrl = new URL("dist/", packageUrl);

/** Every module that a file of the package may name, static or dynamic. */
const importPattern = /(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)(["'])([^"']+)\1/g;

async function builtFiles(): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(distUrl, { recursive: true });
  const texts = await Promise.all(
    names
      .filter((name) => /\.(?:[cm]?js|d\.[cm]?ts)$/.test(name))
      .map(async (name) => [name, await readFile(new URL(name, distUrl), "utf8")] as const),
  );
  return new Map(texts);
}

beforeAll(async () => {
  const files = await readdir(distUrl).catch((): string[] => []);
  if (!files.includes("index.js")) throw new Error("There is no dist/index.js: run the build first.");
});

describe("the built files run anywhere", () => {
  test("they import nothing: no built-in module and no dependency", async () => {
    for (const [name, text] of await builtFiles()) {
      const imported = [...text.matchAll(importPattern)].map(([, , specifier = ""]) => specifier);
      const foreign = imported.filter((specifier) => !specifier.startsWith("."));
      expect(foreign, `imports of dist/${name}`).toEqual([]);
    }
  });

  test("they use no global that only Node has", async () => {
    for (const [name, text] of await builtFiles()) {
      const code = text.replaceAll(/\/\*[^]*?\*\/|(?<!:)\/\/.*$/gm, "");
      expect(code, `dist/${name}`).not.toMatch(/\b(?:process|Buffer|__dirname|setImmediate)\s*[.([]/);
    }
  });

  test("the package has no dependencies of any kind that an installer would fetch", async () => {
    const manifest = JSON.parse(await readFile(new URL("package.json", packageUrl), "utf8")) as object;
    for (const field of ["dependencies", "peerDependencies", "optionalDependencies", "bundledDependencies"]) {
      expect(manifest).not.toHaveProperty(field);
    }
    expect(manifest).toMatchObject({ sideEffects: false, type: "module", files: ["dist"] });
  });

  test("they export what the source exports", async () => {
    const built = (await import(new URL("index.js", distUrl).href)) as object;
    expect(Object.keys(built).toSorted()).toEqual(Object.keys(source).toSorted());
  });
});

// CASES part 2, engine: "only two error predicates ... though CJS entries duplicate classes; engine uses instanceof".
describe("two copies of the package side by side", () => {
  test("recognise each other's errors by brand and code, without instanceof", async () => {
    const copy = (await import(new URL("index.js", distUrl).href)) as typeof source;
    const error = new copy.LongJobsError("lease_lost", "x");
    expect(error).not.toBeInstanceOf(source.LongJobsError);
    expect(source.isLongJobsError(error)).toBe(true);
    expect(source.isLongJobsError(error, "lease_lost")).toBe(true);
    expect(copy.isLongJobsError(new source.LongJobsError("expired", "x"), "lease_lost")).toBe(false);
  });

  test("know each other's engines: a task of one is no orphan for the other", async () => {
    const copy = (await import(new URL("index.js", distUrl).href)) as typeof source;
    const store = new source.MemoryTaskStore();
    const first = new copy.TaskLifecycle({ store });
    const second = new source.TaskLifecycle({ store });
    const { taskId } = await first.createTask();
    expect(await second.getTask(taskId)).toMatchObject({ status: "working" });
    await Promise.all([first.close(), second.close()]);
  });
});

test("open timers do not keep the process alive: a child with tasks, a wait and a question exits by itself (P24)", async () => {
  const child = fileURLToPath(new URL("open-timers/child.ts", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [child], { timeout: 10_000 });
  expect(JSON.parse(stdout)).toEqual({ ttlMs: 30 * 24 * 3_600_000, status: "working" });
});
