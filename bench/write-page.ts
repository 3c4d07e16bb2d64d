import { mkdir, writeFile } from "node:fs/promises";
import { cpus, totalmem } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { lineChart } from "./chart.ts";
import type { Row } from "./row.ts";

const explain = join(dirname(fileURLToPath(import.meta.url)), "../docs/explain");

/** Writes docs/explain/performance.md and the charts that it shows. */
export async function writePerformancePage(rows: readonly Row[]): Promise<void> {
  await mkdir(join(explain, "charts"), { recursive: true });
  const charts = { "growth.svg": growthChart(rows), "amplification.svg": amplificationChart(rows) };
  for (const [name, svg] of Object.entries(charts)) await writeFile(join(explain, "charts", name), svg);
  const tables = [...new Set(rows.map(({ group }) => group))].map((group) => table(group, rows));
  await writeFile(
    join(explain, "performance.md"),
    `# Performance

Written by \`npx -y pnpm@12.21.0 bench --full\` on ${new Date().toISOString().slice(0, 10)}: ${cpus().length} cores
(${cpus()[0]?.model ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}. All contestants of a row run in turn in one
process; a figure is the median, with the least and the most in brackets. Figures of a machine move from run to run: only
ratios within one row mean something.

A lifecycle is a create, a get, three updates and a completion of a record of about 600 bytes: five writes. The yardstick is a Map
of JSON strings with group commit and nothing else: no checks, no time to live, no checksums, no compaction.

Servers for files run in a process each, on the loopback interface.

${tables.join("\n")}
## How cost grows

![Durable lifecycles per second by the number of finished tasks in the log](charts/growth.svg)

![Bytes written per progress update by the size of a field that does not change](charts/amplification.svg)
`,
  );
}

function table(group: string, rows: readonly Row[]): string {
  const lines = rows
    .filter((row) => row.group === group)
    .map(({ row, unit, figures, ratios }) => {
      const measured = Object.entries(figures).map(
        ([name, { median, min, max }]) => `${name}: **${short(median)}** (${short(min)}–${short(max)})`,
      );
      const bars = ratios.map(
        ({ of, value, bar, good, met }) =>
          `${of} = ${short(value)}, bar ${good} ${bar}${met ? "" : " — missed"}`,
      );
      return `| ${row} | ${unit} | ${measured.join("<br>")} | ${bars.join("<br>")} |`;
    });
  return `## ${group[0]?.toUpperCase()}${group.slice(1)}\n\n| row | unit | median (least–most) | ratio |\n|---|---|---|---|\n${lines.join("\n")}\n`;
}

function growthChart(rows: readonly Row[]): string {
  const points = rows.flatMap(({ row, figures }) => {
    const tasks = /^durable lifecycles with (\d+) finished/.exec(row)?.[1];
    const figure = tasks === undefined ? undefined : figures[`longjobs log, ${tasks} tasks`];
    return tasks === undefined || figure === undefined ? [] : [{ x: Number(tasks), y: figure.median }];
  });
  return lineChart({ title: "Durable lifecycles per second", xLabel: "finished tasks in the log", points });
}

function amplificationChart(rows: readonly Row[]): string {
  const points = rows.flatMap(({ row, figures }) => {
    const kib = /field of (\d+) KiB$/.exec(row)?.[1];
    const figure = kib === undefined ? undefined : figures["longjobs log"];
    return kib === undefined || figure === undefined
      ? []
      : [{ x: Math.max(1, Number(kib)), y: figure.median }];
  });
  return lineChart({
    title: "Bytes written per progress update",
    xLabel: "KiB of a field that does not change",
    points,
  });
}

function short(value: number): string {
  if (value >= 1_000) return Math.round(value).toLocaleString("en");
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
