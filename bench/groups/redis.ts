import type { BenchGroup } from "../row.ts";
import { findRedis, rawUpdates, storeUpdates, underPrefix } from "../subjects/redis.ts";
import { measureUpdates } from "../updates.ts";

/** Compare-and-swap updates per second on Redis, beside the bare client with a bare script. */
export const redis: BenchGroup = async function* ({ full, progress }) {
  const url = await findRedis();
  if (url === undefined) {
    progress("redis: skipped, no server answers (LONGJOBS_REDIS_URL)");
    return;
  }
  for (const concurrency of [64, 1]) {
    const row = `Redis updates, ${concurrency === 1 ? "one at a time" : `${concurrency} at once`}`;
    progress(row);
    yield await underPrefix(url, async (prefix) => {
      const updates = (concurrency === 1 ? 3_000 : 40_000) * (full ? 3 : 1);
      const subjects = [await rawUpdates(url, prefix), storeUpdates(url, prefix)] as const;
      const repetitions = full ? 7 : 3;
      return measureUpdates(subjects, { group: "redis", row, concurrency, updates, bar: 0.7, repetitions });
    });
  }
};
