import { expect, test } from "vitest";

import { mutantTable } from "./support/mutant-table.ts";

test("CHECKS.md is the table of checks and wrong stores (vitest -u writes it)", async () => {
  await expect(mutantTable()).toMatchFileSnapshot("../CHECKS.md");
});
