import { Client } from "pg";
import type { PostgresConnection, PostgresPool, PostgresResult, PostgresStatement } from "../../src/index.ts";
import { postgresUrl } from "./with-postgres.ts";

/** A backend and who waits for it. */
interface Backend {
  readonly client: Client;
  lane: Promise<void>;
}

/**
 * What a transaction pooler does: each transaction runs on another backend than the one before, whoever asks, and
 * nothing of a session is left on it afterwards.
 */
export class ChangingPool implements PostgresPool {
  readonly #backends: Promise<readonly Backend[]>;
  #next = 0;

  constructor(size = 4) {
    this.#backends = Promise.all(Array.from({ length: size }, openBackend));
  }

  async connect(): Promise<PostgresConnection> {
    let held: Held | undefined;
    return {
      query: async (statement) => {
        held ??= await this.#take();
        const { client } = held.backend;
        try {
          return await run(client, statement);
        } finally {
          if (!/^(BEGIN|\w+ ISOLATION)/.test(statement.text) && !isOpen(client)) {
            await client.query("DISCARD ALL");
            held.free();
            held = undefined;
          }
        }
      },
      release: () => {
        held?.free();
        held = undefined;
      },
      on: () => undefined,
      removeListener: () => undefined,
    };
  }

  on(): void {
    // The clients have listeners of their own.
  }

  async end(): Promise<void> {
    await Promise.all((await this.#backends).map(({ client }) => client.end()));
  }

  async #take(): Promise<Held> {
    const backends = await this.#backends;
    const backend = backends[this.#next % backends.length];
    this.#next += 1;
    if (backend === undefined) throw new Error("There is no backend.");
    const ahead = backend.lane;
    let free = (): void => undefined;
    backend.lane = new Promise((resolve) => {
      free = resolve;
    });
    await ahead;
    return { backend, free };
  }
}

interface Held {
  readonly backend: Backend;
  readonly free: () => void;
}

async function openBackend(): Promise<Backend> {
  const client = new Client({ connectionString: postgresUrl });
  await client.connect();
  return { client, lane: Promise.resolve() };
}

function run(client: Client, statement: PostgresStatement): Promise<PostgresResult> {
  return client.query(statement);
}

/** Whether a transaction is open, as the server itself said after the last statement. */
function isOpen(client: Client): boolean {
  return client.getTransactionStatus() !== "I";
}
