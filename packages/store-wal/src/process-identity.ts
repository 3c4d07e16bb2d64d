import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Who holds a lock: enough to find out, on the same machine, whether that process is still there. */
export interface ProcessIdentity {
  /** Changes with every boot; empty where the system does not tell. */
  readonly bootId: string;
  /** Pids mean something only inside one namespace; empty where there are none. */
  readonly pidNamespace: string;
  readonly pid: number;
  /** Start of the process in ticks since boot: tells it from a later one with its pid. Empty where unknown. */
  readonly startTime: string;
  readonly host: string;
}

/** What can be said about a holder from here. */
export type Liveness = "alive" | "dead" | "unknown";

/** This process, as others will see it. */
export function identifyProcess(): ProcessIdentity {
  return {
    bootId: orEmpty(() => readText("/proc/sys/kernel/random/boot_id").trim()),
    pidNamespace: orEmpty(() => readlinkSync("/proc/self/ns/pid")),
    pid: process.pid,
    startTime: orEmpty(() => readProcess(process.pid, readText)?.startTime ?? ""),
    host: hostname(),
  };
}

/** Whether a holder still runs. `unknown` when it lives where this process cannot look. */
export function probeProcess(
  holder: ProcessIdentity,
  self: ProcessIdentity = identifyProcess(),
  readStat: (path: string) => string = readText,
): Liveness {
  if (holder.bootId === "" || self.bootId === "") return probeWithoutProc(holder, self);
  if (holder.bootId !== self.bootId || holder.pidNamespace !== self.pidNamespace) return "unknown";
  let found: ProcessState | undefined;
  try {
    found = readProcess(holder.pid, readStat);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Only these say that there is no such process; without a descriptor, for one, nobody can look.
    return code === "ENOENT" || code === "ESRCH" ? "dead" : "unknown";
  }
  // A killed process that nobody has waited for keeps its pid, but writes no more.
  if (found?.state === "Z" || found?.state === "X") return "dead";
  if (found === undefined || holder.startTime === "") return "unknown";
  return found.startTime === holder.startTime ? "alive" : "dead";
}

/** Without /proc a pid that answers may belong to another process by now: then only its heartbeat tells. */
function probeWithoutProc(holder: ProcessIdentity, self: ProcessIdentity): Liveness {
  if (holder.host !== self.host || holder.bootId !== self.bootId) return "unknown";
  if (holder.pid === self.pid) return "alive";
  try {
    process.kill(holder.pid, 0);
    return "unknown";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH" ? "dead" : "unknown";
  }
}

function readText(path: string): string {
  return readFileSync(path, "latin1");
}

interface ProcessState {
  readonly state: string;
  readonly startTime: string;
}

function readProcess(pid: number, readStat: (path: string) => string): ProcessState | undefined {
  const stat = readStat(`/proc/${pid}/stat`);
  // The second field is the command in parentheses and may contain anything, so fields count from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, startTime] = [fields[0], fields[19]];
  return state && startTime ? { state, startTime } : undefined;
}

/** A file that cannot be read here says nothing: the caller falls back. */
function orEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return "";
  }
}
