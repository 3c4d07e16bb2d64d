import type { PostgresConnection, PostgresPool } from "./client.ts";
import { deadlineError, judgeFault } from "./postgres-errors.ts";

/**
 * Runs work on a connection of the pool, within a time that holds for both. The connection goes back to the pool, or
 * is closed when it is broken or the time is over; one that comes after that goes back unused.
 *
 * Every statement passes here: promises and timers are counted.
 */
export function onConnection<T>(
  pool: PostgresPool,
  deadlineMs: number,
  work: (connection: PostgresConnection) => Promise<T>,
): Promise<T> {
  const connecting = pool.connect();
  return new Promise((resolve, reject) => {
    let connection: PostgresConnection | undefined;
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      giveBack(connection, true);
      reject(deadlineError(deadlineMs));
    }, deadlineMs);
    const settle = (isBroken: boolean, done: () => void): void => {
      if (isOver) return;
      clearTimeout(timer);
      giveBack(connection, isBroken);
      done();
    };
    connecting
      .then((taken) => {
        if (isOver) {
          taken.release();
          throw deadlineError(deadlineMs);
        }
        connection = taken;
        taken.on("error", ignoreError);
        return work(taken);
      })
      .then(
        (result) => settle(false, () => resolve(result)),
        (error: unknown) => settle(judgeFault(error).isBroken, () => reject(error)),
      );
  });
}

function giveBack(connection: PostgresConnection | undefined, isBroken: boolean): void {
  connection?.release(isBroken);
  // Not before: the pool listens while it has the connection.
  connection?.removeListener("error", ignoreError);
}

/** Pools that have the listener. It stays when the store is closed: the pool goes on. */
const guarded = new WeakSet<PostgresPool>();

/** Keeps an idle connection that breaks from ending the process. */
export function guardPool(pool: PostgresPool): void {
  if (guarded.has(pool)) return;
  guarded.add(pool);
  pool.on("error", ignoreError);
}

/**
 * An error event that nobody listens to ends the process. Nothing is lost by not looking at it: the statement that
 * ran on a broken connection rejects, and an idle one is replaced by the pool.
 */
function ignoreError(): void {
  // See above.
}
