/** Numbers in [0, 1) that a seed decides. */
export type Random = () => number;

export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function between(random: Random, least: number, most: number): number {
  return least + random() * (most - least);
}

/** The entries in an order of their own. */
export function shuffled<Of>(random: Random, entries: readonly Of[]): Of[] {
  return entries
    .map((entry) => ({ entry, at: random() }))
    .toSorted((left, right) => left.at - right.at)
    .map(({ entry }) => entry);
}
