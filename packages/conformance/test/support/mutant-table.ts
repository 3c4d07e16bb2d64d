import { conformanceChecks } from "../../src/index.ts";
import { mutants } from "../mutants/index.ts";

/** The page `CHECKS.md`: each check, and the wrong stores it catches; in bold those that no other check does. */
export function mutantTable(): string {
  const rows = conformanceChecks.map(({ id, rule, profile, title }) => {
    const caught = mutants.filter(({ caughtBy }) => caughtBy.includes(id));
    const faults = caught.map(({ fault, caughtBy }) => (caughtBy.length === 1 ? `**${fault}**` : fault));
    return `| \`${id}\` | ${rule} | ${profile} | ${title} | ${faults.join("; ")} |`;
  });
  return [
    "# The checks, and the wrong stores they catch",
    "",
    `${conformanceChecks.length} checks, ${mutants.length} deliberately wrong stores. A fault in bold is caught by that check alone: without`,
    "the check the store would pass. Generated from `test/mutants`; `test/mutants.test.ts` holds each store to it.",
    "",
    "| check | rule | profile | what must hold | wrong stores it catches |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
