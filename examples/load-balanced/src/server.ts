/*
 * One instance, as you start it on each machine behind your load balancer:
 * `STORE=redis REDIS_URL=redis://… PORT=8080 node src/server.ts`.
 */
import { openStore, placeFromEnv } from "./open-store.ts";
import { serveTasks } from "./serve.ts";

const { store, release } = await openStore(placeFromEnv());
const instance = await serveTasks({
  store,
  host: process.env["HOST"],
  port: Number(process.env["PORT"] ?? 8080),
  leaseMs: Number(process.env["LEASE_MS"] ?? 30_000),
});
process.send?.({ port: instance.port });
process.once("SIGTERM", () => void stop());
// Whoever started it for a demo has ended.
process.once("disconnect", () => process.exit());

async function stop(): Promise<void> {
  await instance.close();
  await release();
  process.disconnect?.();
}
