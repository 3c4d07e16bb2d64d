import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { syncSnippets } from "../scripts/sync-snippets.ts";

const root = join(import.meta.dirname, "..");
const pages = globSync(["*.md", "docs/**/*.md", "packages/*/*.md", "examples/*/README.md"], { cwd: root });

describe("the pages", () => {
  it("show the code that compiles", () => {
    expect(syncSnippets(true)).toEqual([]);
  });

  it.each(pages)("%s links only to pages and headings that exist", (page) => {
    const dead: string[] = [];
    for (const [, target = ""] of readFileSync(join(root, page), "utf8").matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file = "", heading] = target.split("#");
      const path = file === "" ? join(root, page) : join(root, dirname(page), file);
      if (!existsSync(path)) dead.push(target);
      else if (heading !== undefined && !headingsOf(path).includes(heading)) dead.push(target);
    }
    expect(dead).toEqual([]);
  });

  it("name a test that exists wherever they say what survives what", () => {
    const page = readFileSync(join(root, "docs/explain/durability.md"), "utf8");
    const named = [...page.matchAll(/`((?:packages|test|examples)\/[^`]+)`/g)].map(([, path = ""]) => path);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

function headingsOf(path: string): string[] {
  return [...readFileSync(path, "utf8").matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\s-]/g, "")
      .trim()
      .replaceAll(/\s/g, "-"),
  );
}
