import type { OpenStore } from "./open-store.ts";
import { serveTasks, type ServeOptions } from "./serve.ts";

/** Serves tasks, by what the environment says, until this process is told to end. */
export async function runInstance(
  { store, release }: OpenStore,
  options: Partial<ServeOptions> = {},
): Promise<void> {
  const instance = await serveTasks({
    host: process.env["HOST"],
    port: Number(process.env["PORT"] ?? 8080),
    leaseMs: Number(process.env["LEASE_MS"] ?? 30_000),
    ...options,
    store,
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
}
