import { deadlineError, judgeFault } from "./postgres-errors.ts";
import type {
  PostgresConnection,
  PostgresPool,
  PostgresQueryable,
  PostgresResult,
  PostgresStatement,
} from "./client.ts";
import type { ResolvedOptions } from "./options.ts";
import { bindStatement, type BoundStatement, type Statement } from "./sql/statement.ts";

/** How often a statement is sent again that the server has undone, or a read whose connection broke. */
const MAX_REPEATS = 4;

/** The longest first pause before it is sent again, in milliseconds; each later one is twice as long. */
const FIRST_PAUSE_MS = 10;

/** Shapes of patches that a connection remembers: an engine writes some thirty. */
const MAX_PREPARED = 100;

/** How a statement may be run. */
export interface RunOptions {
  /** True for what may happen twice: it is sent again when the connection breaks. */
  readonly repeatable?: boolean;
}

/**
 * Runs statements on a pool: one connection for one statement, a deadline for both together, and errors by their
 * SQLSTATE. Nothing of it needs a session to stay the same.
 */
export class StatementRunner {
  readonly #options: ResolvedOptions;
  readonly #bound = new WeakMap<Statement, BoundStatement>();
  #named = 0;

  constructor(options: ResolvedOptions) {
    this.#options = options;
    guardPool(options.pool);
  }

  /**
   * Runs one statement in a transaction of its own.
   *
   * A statement that the server has undone is sent again. One whose connection broke may have been committed: it is
   * sent again only if it is repeatable, else the call rejects and the caller reads again.
   */
  async run(statement: Statement, values: unknown[], options: RunOptions = {}): Promise<PostgresResult> {
    const { deadlineMs, pool, random } = this.#options;
    const message = this.#message(statement, values);
    const deadline = new Deadline(deadlineMs);
    try {
      for (let repeats = 0; ; repeats += 1) {
        try {
          return await withConnection(pool, deadline, (connection) => connection.query(message));
        } catch (error) {
          const fault = judgeFault(error);
          const again = fault.sendAgain || (options.repeatable === true && fault.isBroken);
          if (!again || repeats >= MAX_REPEATS || deadline.isOver) throw fault.error;
          await deadline.bound(pause(random() * FIRST_PAUSE_MS * 2 ** repeats));
        }
      }
    } finally {
      deadline.end();
    }
  }

  /** Runs one statement where the caller has its own transaction. Nothing is repeated: that is the caller's to do. */
  async runOn(client: PostgresQueryable, statement: Statement, values: unknown[]): Promise<PostgresResult> {
    const deadline = new Deadline(this.#options.deadlineMs);
    try {
      return await deadline.bound(client.query({ text: this.#bind(statement).text, values }));
    } catch (error) {
      throw judgeFault(error).error;
    } finally {
      deadline.end();
    }
  }

  #message(statement: Statement, values: unknown[]): PostgresStatement {
    const { text, name } = this.#bind(statement);
    return name === undefined ? { text, values } : { text, values, name };
  }

  #bind(statement: Statement): BoundStatement {
    const known = this.#bound.get(statement);
    if (known !== undefined) return known;
    const isNamed = this.#options.preparedStatements && this.#named < MAX_PREPARED;
    const bound = bindStatement(statement, this.#options.schema, isNamed);
    this.#bound.set(statement, bound);
    if (isNamed) this.#named += 1;
    return bound;
  }
}

/** Runs work on a connection of the pool, and gives it back, or closes it when it is broken or late. */
export async function withConnection<T>(
  pool: PostgresPool,
  deadline: Deadline,
  work: (connection: PostgresConnection) => Promise<T>,
): Promise<T> {
  const connecting = pool.connect();
  let connection: PostgresConnection;
  try {
    connection = await deadline.bound(connecting);
  } catch (error) {
    // It may still come, after the deadline: then nobody wants it. If it does not, its error is the one above.
    connecting.then(
      (late) => late.release(),
      () => undefined,
    );
    throw error;
  }
  connection.on("error", ignoreError);
  let broken = true;
  try {
    const result = await deadline.bound(work(connection));
    broken = false;
    return result;
  } catch (error) {
    broken = judgeFault(error).isBroken || deadline.isOver;
    throw error;
  } finally {
    connection.release(broken);
    // Not before: the pool listens while it has the connection.
    connection.removeListener("error", ignoreError);
  }
}

/** The end of a call's time. */
export class Deadline {
  readonly #over: Promise<never>;
  readonly #timer: ReturnType<typeof setTimeout>;
  isOver = false;

  constructor(deadlineMs: number) {
    let reject: (error: Error) => void;
    this.#over = new Promise<never>((_resolve, rejectOver) => {
      reject = rejectOver;
    });
    // A call may settle in time and nobody look at this any more.
    this.#over.catch(() => undefined);
    this.#timer = setTimeout(() => {
      this.isOver = true;
      reject(deadlineError(deadlineMs));
    }, deadlineMs);
  }

  /** The outcome of `work`, or a rejection when the time is over first. */
  bound<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#over]);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/**
 * An error event that nobody listens to ends the process. Nothing is lost by not looking at it: the statement that
 * ran on a broken connection rejects, and an idle one is replaced by the pool.
 */
function ignoreError(): void {
  // See above.
}

/** Pools that have the listener. It stays when the store is closed: the pool goes on. */
const guarded = new WeakSet<PostgresPool>();

function guardPool(pool: PostgresPool): void {
  if (guarded.has(pool)) return;
  guarded.add(pool);
  pool.on("error", ignoreError);
}

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs);
  });
}
