import { readFile } from "node:fs/promises";

import { expect, test } from "vitest";

import { longJobsErrorCodes } from "../src/index.ts";

const page = await readFile(new URL("../../../docs/reference/errors.md", import.meta.url), "utf8");
const sections = page.split(/^## /m).slice(1);
const headings = sections.map((section) => section.split("\n")[0] ?? "");

test("the page and the exported list name the same codes, each once", () => {
  expect(headings.toSorted()).toEqual(longJobsErrorCodes.map((code) => `\`${code}\``).toSorted());
});

test.each(sections.map((section) => [section.split("\n")[0] ?? "", section] as const))(
  "%s says when it happens, its fields, what the caller does, and whether it is retryable",
  (_heading, section) => {
    for (const part of ["When", "Fields", "What you do", "Retryable"]) {
      expect(section).toMatch(new RegExp(`^- \\*\\*${part}:\\*\\* \\S`, "m"));
    }
    expect(section).toMatch(/^- \*\*Retryable:\*\* (?:yes|no|sometimes)/m);
  },
);
