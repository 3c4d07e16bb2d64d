import { withOwnServer } from "../../packages/store-postgres/test/support/with-postgres.ts";
import { chaosTest } from "./chaos.ts";
import { startPostgresBackend } from "./postgres-backend.ts";

withOwnServer("a fleet on Postgres", () => chaosTest("Postgres", startPostgresBackend));
