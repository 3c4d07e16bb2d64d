import type { ClosedLog } from "./closed-log.ts";
import type { DamageReport } from "./damage-report.ts";
import type { Examination } from "./examine-log.ts";

/** Raised when a field changes its meaning or goes; new fields may come at any time. */
export const REPORT_FORMAT = 1;

/** How the last owner left the log. */
export interface OwnerReport {
  /** `none`: never locked, or the lock is not there any more or torn. */
  readonly state: "closed" | "not_closed" | "none";
  readonly pid: number | null;
  readonly host: string | null;
  readonly since: string | null;
}

export interface FileReport {
  readonly name: string;
  readonly bytes: number;
  readonly liveBytes: number;
  readonly garbageBytes: number;
}

/** What is known before the tasks are read. */
export interface LogReport {
  readonly format: typeof REPORT_FORMAT;
  readonly command: "inspect" | "verify" | "repair";
  readonly dir: string;
  readonly owner: OwnerReport;
  readonly files: readonly FileReport[];
}

/** What is known when all tasks are read. */
export interface Conclusion {
  readonly healthy: boolean;
  readonly counts: {
    readonly tasks: number;
    readonly healthyTasks: number;
    readonly damagedTasks: number;
    /** Writes that a crash cut short: nobody was told of them, and nothing is lost. */
    readonly unendedWrites: number;
  };
  readonly liveBytes: number;
  readonly garbageBytes: number;
  readonly damage: readonly DamageReport[];
}

export function reportLog(command: LogReport["command"], log: ClosedLog): LogReport {
  const { owner } = log.ownership;
  const segments = new Map([...log.replayed.segments.values()].map((segment) => [segment.name, segment]));
  return {
    format: REPORT_FORMAT,
    command,
    dir: log.dir,
    owner: {
      state: owner === undefined ? "none" : owner.state === "closed" ? "closed" : "not_closed",
      pid: owner?.holder.pid ?? null,
      host: owner?.holder.host ?? null,
      since: owner?.since ?? null,
    },
    // A file that is not part of the log, or whose headers are gone, has no bytes that anybody needs.
    files: [...log.sizes].map(([name, bytes]) => ({
      name,
      bytes,
      liveBytes: segments.get(name)?.liveBytes ?? 0,
      garbageBytes: segments.get(name)?.garbageBytes ?? 0,
    })),
  };
}

export function conclude(log: ClosedLog, { damage, healthyTasks, damagedTasks }: Examination): Conclusion {
  let liveBytes = 0;
  let garbageBytes = 0;
  for (const segment of log.replayed.segments.values()) {
    liveBytes += segment.liveBytes;
    garbageBytes += segment.garbageBytes;
  }
  return {
    healthy: damage.length === 0,
    counts: {
      tasks: healthyTasks + damagedTasks,
      healthyTasks,
      damagedTasks,
      unendedWrites: log.replayed.verdict.ignored.size,
    },
    liveBytes,
    garbageBytes,
    damage,
  };
}
