/** A moment in the life of a process at which it can be killed or stopped, and which of its occurrences. */
export interface KillPoint {
  readonly at: (typeof killMoments)[number];
  readonly nth: number;
  /** `SIGSTOP` lets the process sleep until somebody sends `SIGCONT`. @default "SIGKILL" */
  readonly signal?: "SIGKILL" | "SIGSTOP";
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

/**
 * Counts moments, and sends this process a real signal at the one that was chosen.
 *
 * @param onStop - Called before the process is stopped, which nobody else can see.
 */
export function killAt(chosen: KillPoint | undefined, onStop: () => void): (moment: KillPoint["at"]) => void {
  let seen = 0;
  return (moment) => {
    if (moment !== chosen?.at || (seen += 1) !== chosen.nth) return;
    if (chosen.signal === "SIGSTOP") onStop();
    process.kill(process.pid, chosen.signal ?? "SIGKILL");
    // The signal is delivered between two instructions of this thread, and well within this wait.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  };
}
