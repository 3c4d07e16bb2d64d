import type { PostgresConnection, PostgresPool, PostgresResult, PostgresStatement } from "../../src/index.ts";

/** A pool between the store and its server whose connections can be made to break. */
export class LossyPool implements PostgresPool {
  readonly #inner: PostgresPool;
  readonly #running = new Set<Promise<unknown>>();
  #state: "good" | "lossy" | "dead" = "good";
  #calls = 0;

  constructor(inner: PostgresPool) {
    this.#inner = inner;
  }

  async connect(): Promise<PostgresConnection> {
    this.#assertAlive();
    const connection = await this.#inner.connect();
    return {
      query: (statement) => this.#query(connection, statement),
      release: (destroy) => connection.release(destroy),
      on: (event, listener) => connection.on(event, listener),
      removeListener: (event, listener) => connection.removeListener(event, listener),
    };
  }

  on(event: "error", listener: (error: Error) => void): unknown {
    return this.#inner.on(event, listener);
  }

  /** From now on every other statement is lost on its way, and of the others the reply is, until repaired. */
  fail(): () => Promise<void> {
    this.#state = "lossy";
    return async () => {
      this.#state = "good";
      await Promise.allSettled(this.#running);
    };
  }

  /** Nothing comes through any more, as for a process that was killed. */
  die(): void {
    this.#state = "dead";
  }

  async #query(connection: PostgresConnection, statement: PostgresStatement): Promise<PostgresResult> {
    this.#assertAlive();
    this.#calls += 1;
    if (this.#state === "lossy" && this.#calls % 2 === 0) throw lost();
    const running = connection.query(statement);
    this.#running.add(running);
    try {
      const result = await running;
      this.#assertAlive();
      if (this.#state === "lossy") throw lost();
      return result;
    } finally {
      this.#running.delete(running);
    }
  }

  #assertAlive(): void {
    if (this.#state === "dead") throw lost();
  }
}

function lost(): Error {
  return new Error("Connection terminated unexpectedly");
}
