import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Several measurements of one figure. */
export interface Figure {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function summarise(values: readonly number[]): Figure {
  const sorted = values.toSorted((left, right) => left - right);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  const middle = (sorted.length - 1) / 2;
  return {
    median: (at(Math.floor(middle)) + at(Math.ceil(middle))) / 2,
    min: at(0),
    max: at(sorted.length - 1),
  };
}

/**
 * Runs all contestants in turn, `repetitions` times, in this one process: a machine whose speed drifts drifts
 * for all of them.
 */
export async function alternate<Value>(
  contestants: ReadonlyMap<string, () => Promise<Value>>,
  repetitions: number,
): Promise<ReadonlyMap<string, Value[]>> {
  const values = new Map<string, Value[]>([...contestants.keys()].map((name) => [name, []]));
  for (let round = 0; round < repetitions; round += 1) {
    for (const [name, run] of contestants) {
      (globalThis as { gc?: () => void }).gc?.();
      values.get(name)?.push(await run());
    }
  }
  return values;
}

/** Runs with a fresh folder, which is removed afterwards. */
export async function inFolder<Value>(run: (dir: string) => Promise<Value>): Promise<Value> {
  const dir = await mkdtemp(join(tmpdir(), "longjobs-bench-"));
  try {
    return await run(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
