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
    bootId: orEmpty(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()),
    pidNamespace: orEmpty(() => readlinkSync("/proc/self/ns/pid")),
    pid: process.pid,
    startTime: readProcess(process.pid)?.startTime ?? "",
    host: hostname(),
  };
}

/** Whether a holder still runs. `unknown` when it lives where this process cannot look. */
export function probeProcess(holder: ProcessIdentity, self: ProcessIdentity = identifyProcess()): Liveness {
  if (holder.bootId === "" || self.bootId === "") return probeWithoutProc(holder, self);
  if (holder.bootId !== self.bootId || holder.pidNamespace !== self.pidNamespace) return "unknown";
  const found = readProcess(holder.pid);
  // A killed process that nobody has waited for keeps its pid, but writes no more.
  if (found === undefined || found.state === "Z" || found.state === "X") return "dead";
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

function readProcess(pid: number): { state: string; startTime: string } | undefined {
  const stat = orEmpty(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
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
