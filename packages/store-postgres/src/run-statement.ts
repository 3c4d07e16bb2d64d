import type { PostgresQueryable, PostgresResult, PostgresStatement } from "./client.ts";
import { withDeadline } from "./deadline.ts";
import { guardPool, onConnection } from "./on-connection.ts";
import type { ResolvedOptions } from "./options.ts";
import { judgeFault } from "./postgres-errors.ts";
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
    const endsAtMs = performance.now() + deadlineMs;
    let leftMs = deadlineMs;
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await onConnection(pool, leftMs, (connection) => connection.query(message));
      } catch (error) {
        const fault = judgeFault(error);
        const again = fault.sendAgain || (options.repeatable === true && fault.isBroken);
        const pauseMs = random() * FIRST_PAUSE_MS * 2 ** repeats;
        leftMs = Math.floor(endsAtMs - performance.now() - pauseMs);
        if (!again || repeats === MAX_REPEATS || leftMs < 1) throw fault.error;
        await pause(pauseMs);
      }
    }
  }

  /** Runs one statement where the caller has its own transaction. Nothing is repeated: that is the caller's to do. */
  async runOn(client: PostgresQueryable, statement: Statement, values: unknown[]): Promise<PostgresResult> {
    try {
      const { text } = this.#bind(statement);
      return await withDeadline(client.query({ text, values }), this.#options.deadlineMs);
    } catch (error) {
      throw judgeFault(error).error;
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

function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, delayMs);
  });
}
