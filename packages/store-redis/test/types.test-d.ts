// Compiled by `tsc -p test/tsconfig.json`, never run: what must compile, and what must not.
import type { LeasingTaskStore, TaskRecord, TaskStore, WatchableTaskStore } from "@longjobs/core";
import { Cluster, Redis } from "ioredis";
import { expectTypeOf } from "vitest";
import { RedisTaskStore, type RedisTaskStoreOptions } from "../src/index.ts";

declare const store: RedisTaskStore;

export function clients(): RedisTaskStore[] {
  return [
    new RedisTaskStore({ client: new Redis() }),
    new RedisTaskStore({ client: new Redis({ protocol: 2 }), keyPrefix: "jobs", commandTimeoutMs: 1_000 }),
    new RedisTaskStore({ client: new Redis({ protocol: 3, replyMapping: "resp3" }) }),
    new RedisTaskStore({ client: new Cluster([]) }),
    // @ts-expect-error a client is required
    new RedisTaskStore({}),
    // @ts-expect-error an address is no client
    new RedisTaskStore({ client: "redis://127.0.0.1" }),
    // @ts-expect-error there is no such option
    new RedisTaskStore({ client: new Redis(), ttl: 5 }),
  ];
}

export function stores(): void {
  expectTypeOf(store).toExtend<TaskStore & WatchableTaskStore & LeasingTaskStore & AsyncDisposable>();
  expectTypeOf(store.get("id")).resolves.toEqualTypeOf<TaskRecord | undefined>();
  expectTypeOf<RedisTaskStoreOptions>().toHaveProperty("maxRecordBytes");
}
