/*
 * Copies regions of compiled files into the Markdown that shows them. A page marks the place with
 * `<!-- snippet: path#region -->` before a fenced block; the file marks the code with `// #region name` and
 * `// #endregion`. With --check nothing is written, and a difference fails.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const pages = ["*.md", "docs/**/*.md", "packages/*/README.md", "examples/*/README.md"];
const block = /(<!-- snippet: (\S+)#(\S+) -->\n```ts\n)([^]*?)(```)/g;

/** The pages whose snippets differ from their files; they are written unless `check` is set. */
export function syncSnippets(check: boolean): string[] {
  const stale: string[] = [];
  for (const page of globSync(pages, { cwd: root })) {
    const path = join(root, page);
    const before = readFileSync(path, "utf8");
    const after = before.replace(
      block,
      (_whole, start: string, file: string, region: string, _old: string, end: string) =>
        `${start}${readRegion(file, region)}${end}`,
    );
    if (after === before) continue;
    stale.push(page);
    if (!check) writeFileSync(path, after);
  }
  return stale;
}

function readRegion(file: string, region: string): string {
  const source = readFileSync(join(root, file), "utf8");
  const found = new RegExp(`^([ \\t]*)// #region ${region}\\n([^]*?)^[ \\t]*// #endregion`, "m").exec(source);
  if (found === null) throw new Error(`${file} has no region ${region}.`);
  const indent = found[1] ?? "";
  return (found[2] ?? "").replaceAll(new RegExp(`^${indent}`, "gm"), "");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const check = process.argv.includes("--check");
  const stale = syncSnippets(check);
  for (const page of stale)
    console.log(check ? `${page}: snippets differ from their files` : `${page}: updated`);
  if (check && stale.length > 0) process.exitCode = 1;
}
