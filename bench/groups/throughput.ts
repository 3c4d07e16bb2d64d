import { runLifecycles, type LifecycleFigures } from "../lifecycles.ts";
import { alternate, inFolder } from "../measure.ts";
import {
  ratioOf,
  toFigures,
  toRatio,
  type BenchGroup,
  type BenchOptions,
  type Ratio,
  type Row,
} from "../row.ts";
import type { Subject } from "../subject.ts";
import { memoryStore, walStore } from "../subjects/longjobs.ts";
import { sdkMemory } from "../subjects/sdk-memory.ts";
import { betterSqlite, nodeSqlite } from "../subjects/sqlite.ts";
import { yardstick } from "../subjects/yardstick.ts";
import { slowFlush } from "../slow-flush.ts";

interface Contest {
  readonly row: string;
  readonly subjects: readonly { readonly subject: Subject; readonly lifecycles: number }[];
  readonly concurrency: number;
  readonly bars: readonly { readonly against: readonly [string, string]; readonly bar: number }[];
  /** A bar that PERF names as a figure of its own. */
  readonly absoluteBar?: { readonly name: string; readonly bar: number };
  readonly stallBar?: { readonly against: readonly [string, string]; readonly bar: number };
}

/** Lifecycles per second and the longest stall of the event loop, for every kind of store. */
export const throughput: BenchGroup = async function* (options) {
  const scale = options.full ? 4 : 1;
  const better = { full: await betterSqlite("FULL"), normal: await betterSqlite("NORMAL") };
  const some = (subject: Subject | undefined, lifecycles: number): Contest["subjects"] =>
    subject === undefined ? [] : [{ subject, lifecycles: lifecycles * scale }];

  const contests: Contest[] = [
    {
      row: "durable lifecycles, 64 at once",
      concurrency: 64,
      subjects: [
        ...some(yardstick(true), 8_000),
        ...some(walStore(), 8_000),
        ...some(nodeSqlite("FULL"), 600),
        ...some(better.full, 600),
      ],
      bars: [
        { against: ["longjobs log", "node:sqlite FULL"], bar: 10 },
        { against: ["longjobs log", "yardstick"], bar: 0.6 },
      ],
      stallBar: { against: ["longjobs log", "yardstick"], bar: 2.5 },
    },
    {
      row: "durable lifecycles, one at a time",
      concurrency: 1,
      subjects: [...some(yardstick(true), 400), ...some(walStore(), 400), ...some(nodeSqlite("FULL"), 400)],
      bars: [{ against: ["longjobs log", "yardstick"], bar: 0.8 }],
    },
    {
      row: "lifecycles without a flush, 64 at once",
      concurrency: 64,
      subjects: [
        ...some(yardstick(false), 12_000),
        ...some(walStore({ fsync: false }), 12_000),
        ...some(nodeSqlite("NORMAL"), 4_000),
        ...some(better.normal, 4_000),
      ],
      bars: [{ against: ["longjobs log, no flush", "yardstick, no flush"], bar: 0.5 }],
    },
    {
      row: "durable lifecycles, 64 at once, with 1.5 ms added to each flush",
      concurrency: 64,
      subjects: [...some(yardstick(true, 1.5), 2_000), ...some(walStore({ files: slowFlush(1.5) }), 2_000)],
      bars: [{ against: ["longjobs log", "yardstick"], bar: 0.6 }],
    },
    {
      row: "lifecycles in memory, 64 at once",
      concurrency: 64,
      subjects: [...some(memoryStore, 30_000), ...some(sdkMemory, 30_000)],
      bars: [],
      absoluteBar: { name: memoryStore.name, bar: 40_000 },
    },
  ];
  for (const contest of contests) {
    options.progress(contest.row);
    yield* runContest(contest, options);
  }
};

async function* runContest(contest: Contest, { full }: BenchOptions): AsyncIterable<Row> {
  const runs = new Map(
    contest.subjects.map(({ subject, lifecycles }) => [
      subject.name,
      (): Promise<LifecycleFigures> =>
        inFolder(async (dir) => {
          const open = await subject.open(dir);
          await runLifecycles(open, Math.ceil(lifecycles / 10), contest.concurrency);
          const figures = await runLifecycles(open, lifecycles, contest.concurrency);
          await open.close();
          return figures;
        }),
    ]),
  );
  const measured = await alternate(runs, full ? 7 : 3);
  const perSecond = toFigures(pick(measured, ({ perSecond: value }) => value));
  const group = "throughput";
  const ratios: Ratio[] = contest.bars.map(({ against, bar }) =>
    ratioOf(perSecond, against, "at least", bar),
  );
  const { absoluteBar } = contest;
  if (absoluteBar !== undefined) {
    const { name, bar } = absoluteBar;
    ratios.push(toRatio(name, perSecond[name]?.median ?? Number.NaN, "at least", bar));
  }
  yield { group, row: contest.row, unit: "lifecycles/s", figures: perSecond, ratios };
  const stall = toFigures(pick(measured, ({ stallMs }) => stallMs));
  const { stallBar } = contest;
  yield {
    group,
    row: `${contest.row}: longest stall`,
    unit: "ms",
    figures: stall,
    ratios: stallBar === undefined ? [] : [ratioOf(stall, stallBar.against, "at most", stallBar.bar)],
  };
}

function pick(
  measured: ReadonlyMap<string, LifecycleFigures[]>,
  choose: (figures: LifecycleFigures) => number,
): Map<string, number[]> {
  return new Map([...measured].map(([name, figures]) => [name, figures.map(choose)]));
}
