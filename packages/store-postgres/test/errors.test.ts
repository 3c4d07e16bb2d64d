import { describe, expect, it } from "vitest";
import { PostgresTaskStore, type PostgresPool, type PostgresResult } from "../src/index.ts";
import { codeOf, record } from "./support/records.ts";

/** An error as the server sends it. */
function serverError(code: string): Error {
  return Object.assign(new Error(`error ${code}`), { code, severity: "ERROR" });
}

interface ScriptedPool extends PostgresPool {
  statements: number;
  destroyed: number;
  released: number;
}

/** A pool whose statements reject with these errors, one after the other, and then succeed. */
function scriptedPool(
  errors: readonly Error[],
  result: PostgresResult = { rows: [], rowCount: 1 },
): ScriptedPool {
  const left = [...errors];
  const pool: ScriptedPool = {
    statements: 0,
    destroyed: 0,
    released: 0,
    connect: async () => ({
      query: async () => {
        pool.statements += 1;
        const error = left.shift();
        if (error !== undefined) throw error;
        return result;
      },
      release: (destroy) => {
        pool.released += 1;
        if (destroy === true) pool.destroyed += 1;
      },
      on: () => undefined,
      removeListener: () => undefined,
    }),
    on: () => undefined,
  };
  return pool;
}

const times = (count: number, error: Error): Error[] => Array.from({ length: count }, () => error);
const reset = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
const pipe = Object.assign(new Error("write EPIPE"), { code: "EPIPE" });

describe("an error of the server", () => {
  it.each([
    ["53100", "no_space", true],
    ["54000", "record_too_large", false],
    ["54001", "record_too_large", false],
    ["XX001", "record_corrupt", false],
    ["XX002", "record_corrupt", false],
    ["42P01", "store_unavailable", true],
    ["3F000", "store_unavailable", true],
    ["42501", "store_unavailable", false],
    ["28P01", "store_unavailable", false],
    ["3D000", "store_unavailable", false],
    ["25006", "store_unavailable", true],
    ["53300", "store_unavailable", true],
    ["53200", "store_unavailable", true],
    ["55P03", "store_unavailable", true],
    ["57014", "store_unavailable", true],
    ["57P01", "store_unavailable", true],
    ["57P03", "store_unavailable", true],
    ["08006", "store_unavailable", true],
    ["58030", "store_unavailable", true],
  ])("%s is %s of a write, which is not sent again", async (state, code, retryable) => {
    const pool = scriptedPool([serverError(state)]);
    const store = new PostgresTaskStore({ pool });
    await expect(store.update("task-1", {}, 1)).rejects.toMatchObject({ code, retryable });
    expect(pool.statements).toBe(1);
    expect(pool.released).toBe(1);
  });

  it.each(["40001", "40P01", "26000"])("%s was undone: the statement is sent again", async (state) => {
    const pool = scriptedPool(times(3, serverError(state)));
    expect(await new PostgresTaskStore({ pool }).update("task-1", {}, 1)).toBe(2);
    expect(pool.statements).toBe(4);
  });

  it("that comes again and again ends the call after five statements", async () => {
    const pool = scriptedPool(times(100, serverError("40001")));
    expect(await codeOf(new PostgresTaskStore({ pool }).create(record("task-1")))).toBe("store_unavailable");
    expect(pool.statements).toBe(5);
  });

  it("is told by its SQLSTATE and not by a code of the same form that the system gave", async () => {
    const pool = scriptedPool([pipe]);
    const store = new PostgresTaskStore({ pool });
    await expect(store.update("task-1", {}, 1)).rejects.toMatchObject({
      code: "store_unavailable",
      cause: pipe,
    });
    expect(pool.destroyed).toBe(1);
  });

  it("keeps the connection when the statement alone failed, and replaces one that is of no use", async () => {
    const kept = scriptedPool([serverError("57014"), serverError("40001")]);
    await codeOf(new PostgresTaskStore({ pool: kept }).update("task-1", {}, 1));
    expect(kept.destroyed).toBe(0);
    for (const state of ["57P01", "25006", "08006"]) {
      const replaced = scriptedPool([serverError(state)]);
      await codeOf(new PostgresTaskStore({ pool: replaced }).update("task-1", {}, 1));
      expect([state, replaced.destroyed]).toEqual([state, 1]);
    }
  });
});

describe("a connection that breaks", () => {
  it("is no reason to send a write again, which may have been committed", async () => {
    const pool = scriptedPool([reset]);
    const store = new PostgresTaskStore({ pool });
    expect(await codeOf(store.update("task-1", {}, 1))).toBe("store_unavailable");
    expect(await codeOf(store.claim("owner", 1, { limit: 1 }))).toBeUndefined();
    expect(pool.statements).toBe(2);
  });

  it("is one to send a read, a renewal and a sweep again", async () => {
    const calls = [
      (store: PostgresTaskStore) => store.get("task-1"),
      (store: PostgresTaskStore) => store.renew([{ taskId: "task-1", token: "t" }], 1),
      (store: PostgresTaskStore) => store.sweep(),
    ];
    for (const call of calls) {
      const pool = scriptedPool(times(2, reset));
      expect(await codeOf(call(new PostgresTaskStore({ pool })))).toBeUndefined();
      expect([pool.statements, pool.destroyed]).toEqual([3, 2]);
    }
  });
});

describe("a deadline", () => {
  it("holds while no connection comes, and one that comes late goes back unused", async () => {
    let come = (): void => undefined;
    const late = scriptedPool([]);
    const pool: PostgresPool = {
      connect: () =>
        new Promise((resolve) => {
          come = () => void late.connect().then(resolve);
        }),
      on: () => undefined,
    };
    const store = new PostgresTaskStore({ pool, deadlineMs: 20 });
    expect(await codeOf(store.get("task-1"))).toBe("store_unavailable");
    come();
    await expect.poll(() => late.released).toBe(1);
    expect([late.statements, late.destroyed]).toEqual([0, 0]);
  });

  it("holds while a statement runs, whose connection is then closed", async () => {
    let destroyed: unknown;
    const pool: PostgresPool = {
      connect: async () => ({
        query: () => new Promise(() => undefined),
        release: (destroy) => {
          destroyed = destroy;
        },
        on: () => undefined,
        removeListener: () => undefined,
      }),
      on: () => undefined,
    };
    const store = new PostgresTaskStore({ pool, deadlineMs: 20 });
    expect(await codeOf(store.create(record("task-1")))).toBe("store_unavailable");
    expect(destroyed).toBe(true);
    await store.close();
  });
});

describe("an option", () => {
  const pool = scriptedPool([]);

  it.each([
    [{}, TypeError],
    [{ pool: {} }, TypeError],
    [{ pool, schema: "" }, TypeError],
    [{ pool, schema: 'a"; DROP SCHEMA public' }, TypeError],
    [{ pool, schema: "pg_jobs" }, TypeError],
    [{ pool, schema: "x".repeat(49) }, TypeError],
    [{ pool, listen: {} }, TypeError],
    [{ pool, preparedStatements: "yes" }, TypeError],
    [{ pool, onError: "log" }, TypeError],
    [{ pool, random: 4 }, TypeError],
    [{ pool, deadlineMs: 0 }, RangeError],
    [{ pool, deadlineMs: Number.NaN }, RangeError],
    [{ pool, deadlineMs: 2 ** 31 }, RangeError],
    [{ pool, maxRecordBytes: 2 ** 30 }, RangeError],
    [{ pool, watchPollMs: 1.5 }, RangeError],
    [{ pool, echoMs: -1 }, RangeError],
    [{ pool, reportIntervalMs: Number.POSITIVE_INFINITY }, RangeError],
  ])("out of bounds is refused when the store is made: %o", (options, kind) => {
    expect(() => new PostgresTaskStore(options as never)).toThrow(kind);
  });

  it("of undefined is its default, and a store that was only made has touched nothing", async () => {
    const touched = scriptedPool([]);
    const store = new PostgresTaskStore({
      pool: touched,
      schema: undefined,
      listen: undefined,
      echoMs: undefined,
    });
    await store.close();
    expect(touched.statements + touched.released).toBe(0);
  });
});
