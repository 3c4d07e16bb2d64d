import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

import type { Remains } from "./support/many-requests/child.ts";

const child = fileURLToPath(new URL("support/many-requests/child.ts", import.meta.url));

test(
  "10,000 HTTP requests, each with a server of its own, and 1,000 subscriptions leave nothing behind",
  { timeout: 120_000 },
  async () => {
    const running = fork(child, [], { execArgv: ["--expose-gc"] });
    const remains = await new Promise<Remains[]>((resolve, reject) => {
      running.once("message", (message) => resolve(message as Remains[]));
      running.once("exit", (code) => reject(new Error(`The child ended early, with ${code}.`)));
    });
    const [early, late] = remains as [Remains, Remains];
    expect(late.requests).toBeGreaterThanOrEqual(10_000);
    expect(late).toMatchObject({ records: 0, watches: 0 });
    expect(late.stats).toEqual({
      attempts: 0,
      handlers: 0,
      queuedRuns: 0,
      lateOutcomes: 0,
      queuedWrites: 0,
      watchedTasks: 0,
      watchedOwners: 0,
    });
    expect(late.servers, "servers that are still held").toBeLessThan(20);
    // 8,000 requests later: what grows by as little as 250 bytes a request is over this bound.
    expect(late.heapBytes - early.heapBytes).toBeLessThan(2_000_000);
  },
);
