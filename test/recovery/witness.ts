import { appendFileSync, readFileSync } from "node:fs";

/** What a handler has done, on paper: written at once, by whichever process did it. */
export interface Sight {
  readonly pid: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly did: "created" | "began" | "stepped" | "saved" | "returned";
  readonly step?: number;
  readonly answer?: string;
}

/** Appends to the witness. One short line is one write, and lines of several processes do not mix. */
export function bearWitness(file: string, sight: Omit<Sight, "pid">): void {
  appendFileSync(file, `${JSON.stringify({ pid: process.pid, ...sight })}\n`);
}

/** Everything that was seen, in order. */
export function readWitness(file: string): readonly Sight[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Sight);
}
