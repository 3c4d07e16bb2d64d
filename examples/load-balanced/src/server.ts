/*
 * One instance, as you start it on each machine behind your load balancer:
 * `STORE=redis REDIS_URL=redis://… PORT=8080 node src/server.ts`.
 */
import { openStore, placeFromEnv } from "./open-store.ts";
import { runInstance } from "./run-instance.ts";

await runInstance(await openStore(placeFromEnv()));
