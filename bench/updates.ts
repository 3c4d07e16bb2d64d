import { alternate } from "./measure.ts";
import { ratioOf, toFigures, type Row } from "./row.ts";

/** Updates per task of one writer, each with the version that the one before left. */
export interface UpdateSubject {
  readonly name: string;
  /** Creates a task and resolves to what updates it. */
  openTask(): Promise<(done: number) => Promise<void>>;
  close(): Promise<void>;
}

/** What is measured, and the least ratio of the store, the second subject, to the bare client, the first. */
export interface UpdateContest {
  readonly group: string;
  readonly row: string;
  readonly concurrency: number;
  readonly updates: number;
  readonly bar: number;
  /** How often each of the two runs. */
  readonly repetitions: number;
}

/** Updates per second of a store beside the bare client, in turn. The subjects are closed afterwards. */
export async function measureUpdates(
  [bare, store]: readonly [UpdateSubject, UpdateSubject],
  { group, row, concurrency, updates, bar, repetitions }: UpdateContest,
): Promise<Row> {
  const subjects = [bare, store];
  const runs = new Map(
    subjects.map((subject) => [subject.name, () => updatesPerSecond(subject, updates, concurrency)]),
  );
  // Once without counting: connections are made, and plans, and code is compiled.
  await alternate(runs, 1);
  const figures = toFigures(await alternate(runs, repetitions));
  for (const subject of subjects) await subject.close();
  const ratios = concurrency === 1 ? [] : [ratioOf(figures, [store.name, bare.name], "at least", bar)];
  return { group, row, unit: "updates/s", figures, ratios };
}

async function updatesPerSecond(
  subject: UpdateSubject,
  updates: number,
  concurrency: number,
): Promise<number> {
  const writers = await Promise.all(Array.from({ length: concurrency }, () => subject.openTask()));
  let left = updates;
  const startMs = performance.now();
  await Promise.all(
    writers.map(async (write) => {
      for (let done = 1; (left -= 1) >= 0; done += 1) await write(done);
    }),
  );
  return (updates / (performance.now() - startMs)) * 1_000;
}
