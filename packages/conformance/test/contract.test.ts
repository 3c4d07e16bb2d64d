import { readFile } from "node:fs/promises";

import { expect, test } from "vitest";

import { conformanceChecks } from "../src/index.ts";

/** The check ids that `docs/reference/contract.md` lists, by rule. */
async function documentedChecks(): Promise<Map<string, string[]>> {
  const page = await readFile(new URL("../../../docs/reference/contract.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| (C\d+) \|.*\| ([^|]*)\|$/gm)];
  return new Map(
    rows.map(([, rule, ids]) => [
      rule ?? "",
      [...(ids ?? "").matchAll(/`([^`]+)`/g)].map(([, id]) => id ?? ""),
    ]),
  );
}

function checksOf(rule: string): string[] {
  return conformanceChecks.filter((check) => check.rule === rule).map(({ id }) => id);
}

test("every rule of the contract has a check, and the page lists exactly its checks", async () => {
  const documented = await documentedChecks();
  expect(documented.size).toBeGreaterThanOrEqual(33);
  for (const [rule, ids] of documented) {
    expect(ids.length, rule).toBeGreaterThan(0);
    expect(ids.toSorted(), rule).toEqual(checksOf(rule).toSorted());
  }
});

test("every check names a rule of the contract", async () => {
  const documented = await documentedChecks();
  expect(conformanceChecks.filter(({ rule }) => !documented.has(rule)).map(({ id }) => id)).toEqual([]);
});

test("check ids are unique and say method and rule", () => {
  const ids = conformanceChecks.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(ids.filter((id) => !/^[a-z]+\.[a-z0-9-]+$/.test(id))).toEqual([]);
});
