import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { freshStore } from "./support/fresh-schema.ts";
import { waitUntil } from "./support/wait-until.ts";
import { postgresUrl, withPostgres } from "./support/with-postgres.ts";

const program = join(import.meta.dirname, "crash/child.ts");

// More in a long run: LONGJOBS_KILLS=200.
const kills = Math.ceil(Number(process.env["LONGJOBS_KILLS"] ?? 20) / 7);

/** Longer than a child of a busy machine needs between two renewals. */
const leaseMs = 6_000;

/** What the child tells: a version that was acknowledged, or leases that it lost. */
type Tell = { readonly taskId: string; readonly version: number } | { readonly lost: readonly string[] };

withPostgres("a process that is killed", () => {
  it(
    "keeps every acknowledged version and its leases; another takes its tasks when they lapse, and not before (C21, P15, P16)",
    { timeout: 60_000 + kills * 20_000 },
    async () => {
      const { store, schema } = await freshStore();
      for (let kill = 0; kill < kills; kill += 1) {
        const acknowledged = new Map<string, number>();
        const lost: string[] = [];
        let left = 50 + Math.floor(Math.random() * 300);
        const child = fork(program, [postgresUrl, schema, `k${kill}`, String(leaseMs)], { execArgv: [] });
        onTestFinished(() => void child.kill("SIGKILL"));
        child.on("message", (tell: Tell) => {
          if ("lost" in tell) lost.push(...tell.lost);
          else acknowledged.set(tell.taskId, tell.version);
          left -= 1;
        });
        await waitUntil(() => left <= 0 && acknowledged.size === 8, "the child has written enough");
        expect(await store.claim("neighbour", leaseMs, { limit: 99 })).toEqual([]);
        const ended = once(child, "exit");
        child.kill("SIGKILL");
        await ended;
        expect(lost).toEqual([]);
        for (const [taskId, version] of acknowledged) {
          const found = await store.get(taskId);
          // The write that was in flight at the kill may have happened; no later one can.
          expect([version, version + 1]).toContain(found?.version);
        }
        const taken: string[] = [];
        await waitUntil(async () => {
          const claimed = await store.claim("neighbour", 60_000, { limit: 99 });
          taken.push(...claimed.map(({ taskId }) => taskId));
          return taken.length === 8;
        }, "the tasks of the child are free");
        expect(taken.toSorted()).toEqual([...acknowledged.keys()].toSorted());
      }
    },
  );
});
