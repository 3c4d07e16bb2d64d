import { toFigures, toRatio, type BenchGroup, type Row } from "../row.ts";
import { findPostgres, hintDelays, inSchema, rawUpdates, storeUpdates } from "../subjects/postgres.ts";
import { measureUpdates } from "../updates.ts";

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
      yield await measure(url, row, isNamed, concurrency, full);
    }
  }
  for (const listens of [true, false]) {
    const row = `Postgres, a change is heard in another process, ${listens ? "with" : "without"} notifications`;
    progress(row);
    yield await measureHints(url, row, listens, full);
  }
};

function measure(
  url: string,
  row: string,
  isNamed: boolean,
  concurrency: number,
  full: boolean,
): Promise<Row> {
  return inSchema(url, async (schema) => {
    // Short slices, many of them: what else the machine does then meets both alike.
    const updates = concurrency === 1 ? 300 : 2_000;
    const repetitions = full ? 41 : 11;
    return measureUpdates(
      [await rawUpdates(url, schema, isNamed), await storeUpdates(url, schema, isNamed)],
      { group: "postgres", row, concurrency, updates, bar: 0.8, repetitions },
    );
  });
}

/** How often a store without notifications looks, by default. */
const WATCH_POLL_MS = 1_000;

function measureHints(url: string, row: string, listens: boolean, full: boolean): Promise<Row> {
  return inSchema(url, async (schema) => {
    const count = (listens ? 100 : 5) * (full ? 3 : 1);
    const figures = toFigures(new Map([["longjobs", await hintDelays(url, schema, listens, count)]]));
    const bar = listens ? 20 : WATCH_POLL_MS + 50;
    const median = figures["longjobs"]?.median ?? Number.NaN;
    return {
      group: "postgres",
      row,
      unit: "ms",
      figures,
      ratios: [toRatio("median", median, "at most", bar)],
    };
  });
}
