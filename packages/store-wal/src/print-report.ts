import { damageKinds, type DamageReport } from "./damage-report.ts";
import type { Conclusion, LogReport } from "./log-report.ts";
import type { TaskReport } from "./task-report.ts";
import { formatBytes, printable, textTable } from "./text-table.ts";

/** Where, whose and how large. */
export function printLog({ dir, owner, files }: LogReport): string[] {
  const whose = `process ${owner.pid} on ${owner.host}, which had it open since ${owner.since}`;
  const last = {
    none: "no owner is known",
    closed: `closed by ${whose}`,
    not_closed: `not closed by ${whose}`,
  }[owner.state];
  const rows = files.map(({ name, bytes, liveBytes, garbageBytes }) => [
    printable(name),
    String(bytes),
    String(liveBytes),
    String(garbageBytes),
  ]);
  const columns = [
    { title: "file" },
    { title: "bytes", isNumber: true },
    { title: "live", isNumber: true },
    { title: "garbage", isNumber: true },
  ];
  return [printable(dir), printable(last), "", ...textTable(columns, rows)];
}

export function printTasks(tasks: readonly TaskReport[], left: number): string[] {
  const rows = tasks.map((task) => [
    printable(task.taskId),
    task.damage === null ? printable(task.status ?? "") : "damaged",
    String(task.version),
    printable(task.lastUpdatedAt ?? "unknown"),
    task.expiresAt === null ? "never" : task.isExpired ? `${task.expiresAt} (expired)` : task.expiresAt,
    printable(
      Object.entries(task.payloads)
        .map(([name, bytes]) => `${name} ${formatBytes(bytes)}`)
        .join(", "),
    ),
  ]);
  const columns = [
    { title: "task" },
    { title: "status" },
    { title: "version", isNumber: true },
    { title: "updated" },
    { title: "expires" },
    { title: "payloads" },
  ];
  const lines = ["", ...textTable(columns, rows)];
  if (left > 0) lines.push(`… and ${left} more; --limit shows them`);
  for (const { record } of tasks) {
    if (record !== undefined) lines.push("", printable(JSON.stringify(record, undefined, 2)));
  }
  return lines;
}

/** The closing line, and every damaged place with what it was. */
export function printConclusion(conclusion: Conclusion): string[] {
  const { counts, liveBytes, garbageBytes, damage } = conclusion;
  const { tasks, damagedTasks, unendedWrites } = counts;
  const lines: string[] = [""];
  for (const one of damage) lines.push(...printDamage(one), "");
  if (unendedWrites > 0)
    lines.push(
      `${count(unendedWrites, "write")} cut short by a crash: nobody was told of it, nothing is lost`,
    );
  const sizes = `${formatBytes(liveBytes)} live, ${formatBytes(garbageBytes)} garbage`;
  const verdict =
    damage.length === 0
      ? "no damage"
      : `${count(damage.length, "damaged place")}, ${count(damagedTasks, "task")} refused`;
  lines.push(`${count(tasks, "task")}, ${sizes}: ${verdict}`);
  return lines;
}

function printDamage(damage: DamageReport): string[] {
  const { kind, taskId, idHash, knownVersion, sequence, bornAt, expiresAt } = damage;
  const hash = idHash === null ? undefined : `a task with the id hash ${idHash}`;
  const facts = [
    knownVersion === null ? undefined : `version ${knownVersion} is the last that is known`,
    sequence === null ? undefined : `sequence ${sequence}`,
    bornAt === null ? undefined : `born ${bornAt}`,
    expiresAt === null ? undefined : `expires ${expiresAt}`,
  ].filter((fact) => fact !== undefined);
  return [
    `damaged: ${taskId === null ? (hash ?? "no task is known") : printable(taskId)}`,
    `  was         ${damageKinds[kind]}`,
    ...(facts.length === 0 ? [] : [`  known       ${facts.join(", ")}`]),
    `  place       ${damage.file} at ${damage.offset}, ${count(damage.bytes, "byte")}`,
    `  quarantine  ${damage.quarantine === null ? quarantineNote(kind) : printable(damage.quarantine)}`,
  ];
}

function quarantineNote(kind: DamageReport["kind"]): string {
  if (kind === "missing") return "nothing to keep";
  if (kind === "marker") return "no file for it is left";
  if (kind === "superseded") return "no copy is kept of what nobody misses";
  return "no copy yet: opening the log with WalTaskStore makes one";
}

export function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}
