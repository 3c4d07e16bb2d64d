/*
 * A real process with a real store, run from the built files. Eight writers create tasks with a lease, write them again
 * and again, and tell each version that was acknowledged; the leases are renewed meanwhile. The parent kills it.
 */
import { Pool } from "pg";
import type { PostgresTaskStore as Store } from "../../src/index.ts";
import { record } from "../support/records.ts";

const built = new URL("../../dist/index.js", import.meta.url);
const { PostgresTaskStore } = (await import(built.href)) as { PostgresTaskStore: typeof Store };

const [url = "", schema = "", prefix = "", leaseMs = ""] = process.argv.slice(2);
const store = new PostgresTaskStore({ pool: new Pool({ connectionString: url, max: 4 }), schema });
const durationMs = Number(leaseMs);
const held = new Map<string, string>();

async function renewForEver(): Promise<void> {
  for (;;) {
    await new Promise((resolve) => {
      setTimeout(resolve, durationMs / 5);
    });
    const leases = [...held].map(([taskId, token]) => ({ taskId, token }));
    const lost = await store.renew(leases, durationMs);
    if (lost.length > 0) process.send?.({ lost });
  }
}

async function writeForEver(writer: number): Promise<void> {
  const taskId = `${prefix}-${writer}`;
  const token = crypto.randomUUID();
  await store.create(record(taskId, { lease: { owner: prefix, token, durationMs } }));
  held.set(taskId, token);
  for (let version = 1; ; version += 1) {
    process.send?.({ taskId, version });
    await store.update(taskId, { progress: { done: version + 1 } }, version);
  }
}

void renewForEver();
for (let writer = 0; writer < 8; writer += 1) void writeForEver(writer);
