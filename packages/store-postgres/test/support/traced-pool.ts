import type { PostgresConnection, PostgresPool, PostgresResult, PostgresStatement } from "../../src/index.ts";

/** Sees every statement, and may do something else instead. */
export type Tracer = (
  statement: PostgresStatement,
  connection: PostgresConnection,
) => Promise<PostgresResult>;

/** A pool whose statements go through a function. */
export function tracedPool(pool: PostgresPool, trace: Tracer): PostgresPool {
  return {
    connect: async () => {
      const connection = await pool.connect();
      return {
        query: (statement) => trace(statement, connection),
        release: (destroy) => connection.release(destroy),
        on: (event, listener) => connection.on(event, listener),
        removeListener: (event, listener) => connection.removeListener(event, listener),
      };
    },
    on: (event, listener) => pool.on(event, listener),
  };
}
