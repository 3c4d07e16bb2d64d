/** A moment in the life of a process at which it can be killed, and which of its occurrences. */
export interface KillPoint {
  readonly at: (typeof killMoments)[number];
  readonly nth: number;
}

/** P15: before and after the create, after the start, in the middle, during and after the completion. */
export const killMoments = [
  "create begins",
  "create is durable",
  "handler begins",
  "step is done",
  "update begins",
  "update is durable",
  "completion begins",
  "completion is durable",
  "claim is durable",
] as const;

/** Counts moments, and ends the process with a real `SIGKILL` at the one that was chosen. */
export function killAt(chosen: KillPoint | undefined): (moment: KillPoint["at"]) => void {
  let seen = 0;
  return (moment) => {
    if (moment !== chosen?.at || (seen += 1) < chosen.nth) return;
    process.kill(process.pid, "SIGKILL");
    // The signal is delivered between two instructions of this thread, and not later than this.
    for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);
  };
}
