import { randomBytes } from "node:crypto";

import { dropSchema } from "../../packages/store-postgres/test/support/fresh-schema.ts";
import { postgresUrl, withPostgres } from "../../packages/store-postgres/test/support/with-postgres.ts";
import { anyProcessScenarios } from "./any-process.ts";
import { fencingScenarios } from "./fencing.ts";
import type { FreshPlace } from "./scene.ts";
import { recoveryScenarios } from "./scenarios.ts";

withPostgres("fleets on Postgres", () => {
  recoveryScenarios("store-postgres", () => freshPlace(true));
  fencingScenarios("store-postgres", () => freshPlace(true));
  anyProcessScenarios("store-postgres", () => freshPlace(true));
  anyProcessScenarios("store-postgres without notifications", () => freshPlace(false));
});

async function freshPlace(notifies: boolean): Promise<FreshPlace> {
  const schema = `recovery_${randomBytes(6).toString("hex")}`;
  return {
    place: { kind: "postgres", url: postgresUrl, schema, notifies },
    remove: () => dropSchema(schema),
  };
}
