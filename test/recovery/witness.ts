import { appendFileSync, readFileSync } from "node:fs";

/** What a process has done, on paper: written at once, by whichever process did it. */
export interface Sight {
  readonly pid: number;
  /** Absent for what a process does as a whole. */
  readonly taskId?: string;
  readonly attempt?: number;
  readonly did:
    | "created"
    | "began"
    | "stepped"
    | "saved"
    | "got"
    | "returned"
    | "aborted"
    | "wrote"
    | "looked"
    | "reported"
    | "stopped";
  readonly step?: number;
  /** What a person has answered, or what the handler has returned. */
  readonly answer?: string;
  /** Which question it was, where the handler knows. */
  readonly key?: string;
  /** The call that gave the answer. */
  readonly by?: string;
  /** Why a signal was aborted; what was reported. */
  readonly reason?: string;
  readonly write?: Write;
}

/** A write that a store has accepted. Versions say in which order, whoever came first to say so. */
export interface Write {
  readonly version: number;
  /** The token of a lease that this write has given. */
  readonly heldBy?: string | undefined;
  /** The number of an attempt that this write has begun. */
  readonly begun?: number | undefined;
  /** The number of the attempt whose checkpoint this is. */
  readonly savedBy?: number | undefined;
  /** The token under which this write has ended the task. */
  readonly endedBy?: string | undefined;
}

/** Appends to the witness. One short line is one write, and lines of several processes do not mix. */
export function bearWitness(file: string, sight: Omit<Sight, "pid">): void {
  appendFileSync(file, `${JSON.stringify({ pid: process.pid, ...sight })}\n`);
}

/** Everything that was seen, in order; of one task or of all. A line that is being written is not seen yet. */
export function readWitness(file: string, ofTask?: string): readonly Sight[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Sight)
    .filter(({ taskId }) => ofTask === undefined || taskId === ofTask);
}

/** Waits until something was seen. */
export async function untilSeen(
  file: string,
  what: string,
  isIt: (sights: readonly Sight[]) => boolean,
): Promise<readonly Sight[]> {
  const endMs = Date.now() + 60_000;
  for (;;) {
    const sights = readWitness(file);
    if (isIt(sights)) return sights;
    if (Date.now() > endMs) throw new Error(`Not seen within a minute: ${what}`);
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
}
