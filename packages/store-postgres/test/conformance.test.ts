import { runTaskStoreConformance } from "@longjobs/conformance";
import { it } from "vitest";
import { ChangingPool } from "./support/changing-pool.ts";
import { listenClient, underTest } from "./support/under-test.ts";
import { withPostgres } from "./support/with-postgres.ts";

const variants = {
  PostgresTaskStore: underTest(),
  "PostgresTaskStore that listens": underTest({ options: { listen: listenClient } }),
  "PostgresTaskStore with prepared statements": underTest({ options: { preparedStatements: true } }),
  // P50
  "PostgresTaskStore behind a transaction pooler": underTest({ openPool: () => new ChangingPool() }),
};

for (const [name, factory] of Object.entries(variants)) {
  runTaskStoreConformance(name, factory, {
    runner: { describe: withPostgres, it, skip: it.skip },
    profile: "shared",
  });
}
