import { Client, Pool } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { PostgresTaskStore, type PostgresTaskStoreOptions } from "../src/index.ts";
import { schemaName, testPool, freshStore } from "./support/fresh-schema.ts";
import { OwnServer } from "./support/own-server.ts";
import { codeOf, record } from "./support/records.ts";
import { TcpProxy } from "./support/tcp-proxy.ts";
import { waitUntil } from "./support/wait-until.ts";
import { postgresUrl, withOwnServer, withPostgres } from "./support/with-postgres.ts";

const writers = Array.from({ length: 16 }, (_, index) => index);

withPostgres("a backend that is terminated", () => {
  it("costs no acknowledged write, and nothing but store_unavailable is seen of it", async () => {
    const { store, pool, sql } = await freshStore();
    const backends = new Set<number>();
    pool.on("connect", (client) => backends.add((client as unknown as { processID: number }).processID));
    const killer = new Client({ connectionString: postgresUrl });
    await killer.connect();
    onTestFinished(() => killer.end());
    const over = new AbortController();
    const killing = (async () => {
      try {
        for (let kills = 0; kills < 30; kills += 1) {
          const pids = [...backends];
          backends.clear();
          await killer.query("SELECT pg_terminate_backend(pid) FROM unnest($1::int[]) AS pid", [pids]);
          await waitUntil(() => backends.size > 1, "the pool has new connections");
        }
      } finally {
        over.abort();
      }
    })();
    const codes = new Set<string | undefined>();
    const acknowledged = await Promise.all(
      writers.map(async (writer) => {
        const taskId = `task-${writer}`;
        await insist(() => store.create(record(taskId)), codes, "task_exists");
        let atLeast = 1;
        while (!over.signal.aborted) {
          const version = (await insist(() => store.get(taskId), codes))?.version ?? 0;
          expect(version).toBeGreaterThanOrEqual(atLeast);
          atLeast = version;
          const code = await codeOf(store.update(taskId, { progress: { done: version } }, version));
          codes.add(code);
          if (code === undefined) atLeast = version + 1;
        }
        return [taskId, atLeast] as const;
      }),
    );
    await killing;
    for (const [taskId, atLeast] of acknowledged) {
      expect((await store.get(taskId))?.version).toBeGreaterThanOrEqual(atLeast);
    }
    expect([...codes].filter((code) => code !== undefined && code !== "task_exists")).toEqual([
      "store_unavailable",
    ]);
    expect(await sql("SELECT count(*)::int AS count FROM tasks")).toEqual([{ count: writers.length }]);
  });
});

withPostgres("an idle connection that is terminated", () => {
  it("does not end a process that listens to no error of its pool", async () => {
    const { store, pool } = await freshStore();
    await store.create(record("task-1"));
    const killer = new Client({ connectionString: postgresUrl });
    await killer.connect();
    onTestFinished(() => killer.end());
    const { rows } = await pool.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    await killer.query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
    await waitUntil(() => pool.totalCount === 0, "the pool has noticed");
    expect((await store.get("task-1"))?.version).toBe(1);
  });
});

withPostgres("a row that somebody else holds locked", () => {
  it("ends a write at its deadline, and the other tasks go on", async () => {
    const { store, pool, schema } = await freshStore({ deadlineMs: 1_000 });
    await store.create(record("task-1"));
    await store.create(record("task-2"));
    const holder = await pool.connect();
    await holder.query(`BEGIN; SELECT 1 FROM "${schema}".tasks WHERE task_id = 'task-1' FOR UPDATE`);
    expect(await codeOf(store.update("task-1", { statusMessage: "waits" }, 1))).toBe("store_unavailable");
    expect(await store.update("task-2", { statusMessage: "goes on" }, 1)).toBe(2);
    // A claim passes over what is locked.
    expect((await store.claim("a", 1_000, { limit: 5 })).map(({ taskId }) => taskId)).toEqual(["task-2"]);
    await holder.query("ROLLBACK");
    holder.release();
  });
});

withPostgres("a connection that goes silent", () => {
  it("is given up at the deadline, and the next call has another", async () => {
    const proxy = await TcpProxy.start(postgresUrl);
    const pool = testPool({ url: proxy.through(postgresUrl), max: 2 });
    const { store } = await freshStore({ pool, deadlineMs: 2_000 });
    onTestFinished(() => proxy.stop());
    await store.create(record("task-1"));
    proxy.silence();
    expect(await codeOf(store.update("task-1", { statusMessage: "lost" }, 1))).toBe("store_unavailable");
    expect((await store.get("task-1"))?.version).toBe(1);
    expect(await store.update("task-1", { statusMessage: "kept" }, 1)).toBe(2);
  });

  it("is replaced by the listener when its echo does not come, and what was missed is found", async () => {
    const proxy = await TcpProxy.start(postgresUrl);
    onTestFinished(() => proxy.stop());
    const { store, another, errors } = await freshStore({
      echoMs: 200,
      listen: () => new Client({ connectionString: proxy.through(postgresUrl) }),
    });
    const second = another();
    await store.create(record("task-1"));
    let hints = 0;
    await second.watch("task-1", () => (hints += 1));
    const opened = proxy.opened;
    proxy.silence();
    await store.update("task-1", { progress: { done: 1 } }, 1);
    await waitUntil(() => hints > 0, "the update is found");
    await waitUntil(() => proxy.opened > opened, "the listener connects again");
    await waitUntil(() => errors.length > 0, "it is reported");
    const before = hints;
    await waitUntil(async () => {
      const version = (await store.get("task-1"))?.version ?? 0;
      await store.update("task-1", { progress: { done: version } }, version);
      return hints > before;
    }, "updates are heard again");
  });
});

withOwnServer("a server of the test's own", () => {
  let server: OwnServer;
  beforeAll(async () => {
    server = await OwnServer.start();
  });
  afterAll(() => server.remove());

  async function open(
    options: Partial<PostgresTaskStoreOptions> = {},
  ): Promise<{ store: PostgresTaskStore; another: PostgresTaskStore }> {
    const pool = new Pool({ connectionString: server.url, max: 8 });
    const schema = schemaName();
    const store = new PostgresTaskStore({ pool, schema, ...options });
    const another = new PostgresTaskStore({ pool, schema });
    onTestFinished(async () => {
      await Promise.all([store.close(), another.close()]);
      await pool.end();
    });
    await store.migrate();
    return { store, another };
  }

  it("may be killed and started again: what was acknowledged is there, and the same store goes on (C21, C33)", async () => {
    const { store } = await open();
    const acknowledged = new Map<string, number>();
    const codes = new Set<string | undefined>();
    const over = new AbortController();
    const working = Promise.all(
      writers.map(async (writer) => {
        for (let task = 0; !over.signal.aborted; task += 1) {
          const taskId = `task-${writer}-${task}`;
          const created = await codeOf(store.create(record(taskId)));
          codes.add(created);
          if (created !== undefined) continue;
          acknowledged.set(taskId, 1);
          const updated = await codeOf(store.update(taskId, { status: "completed", result: {} }, 1));
          codes.add(updated);
          if (updated === undefined) acknowledged.set(taskId, 2);
        }
      }),
    );
    for (let kills = 0; kills < 3; kills += 1) {
      const before = acknowledged.size;
      await waitUntil(() => acknowledged.size > before + 50, "the writers write");
      await server.kill();
      await server.run();
    }
    over.abort();
    await working;
    expect([...codes].filter((code) => code !== undefined)).toEqual(["store_unavailable"]);
    for (const [taskId, version] of acknowledged) {
      const found = await store.get(taskId);
      expect([taskId, (found?.version ?? 0) >= version]).toEqual([taskId, true]);
    }
  });

  it("that is down brings fewer than ten new connections in the first second, and one report per interval (P54)", async () => {
    const errors: unknown[] = [];
    const attempts: number[] = [];
    const { store, another } = await open({
      echoMs: 100,
      onError: (error) => errors.push(error),
      listen: () => {
        attempts.push(performance.now());
        return new Client({ connectionString: server.url });
      },
    });
    await store.create(record("task-1"));
    let hints = 0;
    await store.watch("task-1", () => (hints += 1));
    expect(attempts).toHaveLength(1);
    await server.kill();
    const downAtMs = performance.now();
    await waitUntil(() => performance.now() - downAtMs > 1_500, "the outage lasts");
    const first = attempts.filter((atMs) => atMs > downAtMs && atMs < downAtMs + 1_000);
    expect(first.length).toBeGreaterThan(1);
    expect(first.length).toBeLessThan(10);
    await server.run();
    await waitUntil(async () => {
      const version = (await another.get("task-1"))?.version ?? 0;
      await another.update("task-1", { progress: { done: version } }, version);
      return hints > 0;
    }, "the watch works again");
    // The listener, its echo and the looks: one line each, whatever number of attempts there was.
    expect(errors.length).toBeLessThanOrEqual(3);
    expect(new Set(errors).size).toBe(errors.length);
  });
});

/** Calls until it succeeds, or says that it had succeeded before. */
async function insist<T>(
  call: () => Promise<T>,
  codes: Set<string | undefined>,
  settled?: string,
): Promise<T | undefined> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      const { code } = error as { code?: string };
      codes.add(code);
      if (code === settled) return undefined;
      if (code !== "store_unavailable") throw error;
    }
  }
}
