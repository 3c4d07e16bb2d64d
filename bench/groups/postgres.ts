import type { BenchGroup, Row } from "../row.ts";
import { findPostgres, inSchema, rawUpdates, storeUpdates } from "../subjects/postgres.ts";
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
};

function measure(
  url: string,
  row: string,
  isNamed: boolean,
  concurrency: number,
  full: boolean,
): Promise<Row> {
  return inSchema(url, async (schema) => {
    const updates = (concurrency === 1 ? 1_000 : 10_000) * (full ? 3 : 1);
    return measureUpdates(
      [await rawUpdates(url, schema, isNamed), await storeUpdates(url, schema, isNamed)],
      { group: "postgres", row, concurrency, updates, bar: 0.8, full },
    );
  });
}
