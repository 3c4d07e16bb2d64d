/*
 * Measures longjobs beside what a user might pick instead, in this one process, and prints a JSON line per row.
 * `--full` runs the long version and writes docs/explain/performance.md with its charts; `--only GROUP` runs one
 * group. Absolute figures are not asserted: only ratios of one run mean something.
 */
import { amplification } from "./groups/amplification.ts";
import { files } from "./groups/files.ts";
import { growth } from "./groups/growth.ts";
import { http } from "./groups/http.ts";
import { instances } from "./groups/instances.ts";
import { opening } from "./groups/opening.ts";
import { postgres } from "./groups/postgres.ts";
import { reads } from "./groups/reads.ts";
import { redis } from "./groups/redis.ts";
import { scale } from "./groups/scale.ts";
import { throughput } from "./groups/throughput.ts";
import type { BenchGroup, Row } from "./row.ts";
import { writePerformancePage } from "./write-page.ts";

const groups: Readonly<Record<string, BenchGroup>> = {
  throughput,
  reads,
  amplification,
  opening,
  growth,
  http,
  postgres,
  files,
  redis,
  instances,
  scale,
};
const full = process.argv.includes("--full");
const only = process.argv.indexOf("--only");
const chosen = only < 0 ? Object.keys(groups) : [process.argv[only + 1] ?? ""];

const rows: Row[] = [];
for (const name of chosen) {
  const group = groups[name];
  if (group === undefined)
    throw new Error(`There is no group ${name}; there are ${Object.keys(groups).join(", ")}.`);
  for await (const row of group({ full, progress: (words) => console.error(`… ${words}`) })) {
    rows.push(row);
    console.log(JSON.stringify(row));
  }
}
const ratios = rows.flatMap((row) => row.ratios.map((ratio) => ({ row: row.row, ...ratio })));
for (const { row, of, value, bar, good, met } of ratios) {
  console.error(`${met ? "met   " : "MISSED"} ${row}: ${of} = ${value.toFixed(2)} (${good} ${bar})`);
}
if (full && only < 0) await writePerformancePage(rows);
