import { setTimeout as delay } from "node:timers/promises";

import { between, shuffled, type Random } from "./random.ts";

/** Something that goes wrong for a while, and what mends it. */
export interface Fault {
  readonly name: string;
  /** What it is done to: two faults never have the same victim at once. */
  readonly victim: string;
  /** The longest that it lasts, in milliseconds. */
  readonly longestMs: number;
  readonly begin: () => Promise<void> | void;
  readonly mend: () => Promise<void> | void;
}

/** The longest time between two faults: with two of them at a time something is always wrong. */
const longestCalmMs = 600;
const mostAtOnce = 2;

/**
 * Lets faults happen, each in turn and in an order that the random numbers decide, for so long and until each has happened; then
 * everything is mended. Resolves to how often each happened.
 *
 * @param patience - Aborted when it takes too long.
 */
export async function disturb(
  faults: readonly Fault[],
  random: Random,
  durationMs: number,
  patience: AbortSignal,
): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>(faults.map(({ name }) => [name, 0]));
  const underWay = new Set<string>();
  const happening: Promise<void>[] = [];
  const over = new AbortController();
  const happen = async ({ begin, longestMs, mend }: Fault): Promise<void> => {
    await begin();
    await passes(between(random, 200, longestMs), over.signal);
    await mend();
  };
  const endMs = performance.now() + durationMs;
  let due: Fault[] = [];
  while (performance.now() < endMs || [...counts.values()].includes(0)) {
    if (!(await passes(between(random, 100, longestCalmMs), patience))) break;
    if (due.length === 0) due = shuffled(random, faults);
    const mayHappen = ({ victim }: Fault): boolean => !underWay.has(victim);
    // A kind that is new comes first: on a slow machine there is no time for all of them twice.
    const isNew = due.findIndex((fault) => mayHappen(fault) && counts.get(fault.name) === 0);
    const next = isNew < 0 ? due.findIndex(mayHappen) : isNew;
    if (next < 0 || underWay.size >= mostAtOnce) continue;
    const [fault] = due.splice(next, 1);
    if (fault === undefined) continue;
    counts.set(fault.name, (counts.get(fault.name) ?? 0) + 1);
    underWay.add(fault.victim);
    const happened = happen(fault).finally(() => underWay.delete(fault.victim));
    // What could not be done or mended is told in the end, when all others are mended.
    happened.catch(() => undefined);
    happening.push(happened);
  }
  over.abort();
  await Promise.allSettled(happening);
  await Promise.all(happening);
  return counts;
}

/** False when the signal was aborted first. */
async function passes(ms: number, signal: AbortSignal): Promise<boolean> {
  return delay(ms, true, { signal }).catch(() => false);
}
