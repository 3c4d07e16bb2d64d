import { summarise, type Figure } from "./measure.ts";

/** One line of the results: a figure for each contestant, and ratios with their bars. */
export interface Row {
  readonly group: string;
  readonly row: string;
  readonly unit: string;
  readonly figures: { readonly [contestant: string]: Figure };
  readonly ratios: readonly Ratio[];
}

/** A ratio of two medians of one run, against its bar. */
export interface Ratio {
  readonly of: string;
  readonly value: number;
  readonly bar: number;
  /** Which side of the bar is good. */
  readonly good: "at least" | "at most";
  readonly met: boolean;
}

/** Whether a run is the short one or the long one. */
export interface BenchOptions {
  readonly full: boolean;
  /** Says what is being measured now. */
  readonly progress: (words: string) => void;
}

/** A group measures its rows, one after the other. */
export type BenchGroup = (options: BenchOptions) => AsyncIterable<Row>;

export function toFigures(values: ReadonlyMap<string, readonly number[]>): Row["figures"] {
  return Object.fromEntries([...values].map(([name, measured]) => [name, summarise(measured)]));
}

/** The ratio of the medians of two contestants. */
export function ratioOf(
  figures: Row["figures"],
  [above, below]: readonly [string, string],
  good: Ratio["good"],
  bar: number,
): Ratio {
  return toRatio(
    `${above} / ${below}`,
    (figures[above]?.median ?? Number.NaN) / (figures[below]?.median ?? Number.NaN),
    good,
    bar,
  );
}

/** A value against a bar. */
export function toRatio(of: string, value: number, good: Ratio["good"], bar: number): Ratio {
  return { of, value, bar, good, met: good === "at least" ? value >= bar : value <= bar };
}
