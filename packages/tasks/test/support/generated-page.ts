import { readFile, writeFile } from "node:fs/promises";

import { expect } from "vitest";

/**
 * Fails unless a page of the documentation has, between `<!-- generated: part -->` and `<!-- /generated -->`, what the tests
 * found. With LONGJOBS_WRITE_PAGES set the page is written instead: see `scripts/write-client-pages.ts`.
 */
export async function expectGenerated(page: string, part: string, found: string): Promise<void> {
  const path = new URL(`../../../../docs/${page}`, import.meta.url);
  const before = await readFile(path, "utf8");
  const place = new RegExp(`(<!-- generated: ${part} -->\n)([^]*?)(\n<!-- /generated -->)`);
  const [, start = "", shown, end = ""] = place.exec(before) ?? [];
  if (shown === undefined) throw new Error(`docs/${page} has no place for ${part}.`);
  if (process.env["LONGJOBS_WRITE_PAGES"] === undefined)
    return expect(shown, `docs/${page}: if this is meant, run pnpm docs:clients`).toBe(found);
  await writeFile(
    path,
    before.replace(place, () => `${start}${found}${end}`),
  );
}

/** A table in Markdown. */
export function toTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
