import { alternate } from "../measure.ts";
import { ratioOf, toFigures, type BenchGroup, type Row } from "../row.ts";
import {
  findPostgres,
  inSchema,
  rawUpdates,
  storeUpdates,
  type UpdateSubject,
} from "../subjects/postgres.ts";

/** Compare-and-swap updates per second on Postgres, beside the bare client with one statement each. */
export const postgres: BenchGroup = async function* ({ full, progress }) {
  const url = await findPostgres();
  if (url === undefined) {
    progress("postgres: skipped, no server answers (LONGJOBS_POSTGRES_URL)");
    return;
  }
  for (const isNamed of [false, true]) {
    for (const concurrency of [64, 1]) {
      const setting = isNamed ? "prepared statements" : "no prepared statements";
      const row = `Postgres updates, ${concurrency === 1 ? "one at a time" : `${concurrency} at once`}, ${setting}`;
      progress(row);
      yield await measureUpdates(url, row, isNamed, concurrency, full);
    }
  }
};

function measureUpdates(
  url: string,
  row: string,
  isNamed: boolean,
  concurrency: number,
  full: boolean,
): Promise<Row> {
  return inSchema(url, async (schema) => {
    const subjects = [await rawUpdates(url, schema, isNamed), await storeUpdates(url, schema, isNamed)];
    const updates = (concurrency === 1 ? 1_000 : 10_000) * (full ? 3 : 1);
    const runs = new Map(
      subjects.map((subject) => [subject.name, () => updatesPerSecond(subject, updates, concurrency)]),
    );
    // Once without counting: connections are made, and plans.
    await alternate(runs, 1);
    const figures = toFigures(await alternate(runs, full ? 7 : 3));
    for (const subject of subjects) await subject.close();
    const ratios =
      concurrency === 1 ? [] : [ratioOf(figures, ["longjobs update", "raw statement"], "at least", 0.8)];
    return { group: "postgres", row, unit: "updates/s", figures, ratios };
  });
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
