import type { ErrorListener } from "@longjobs/core";
import type { PostgresListenClient, PostgresPool } from "./client.ts";

/** Options of {@link PostgresTaskStore}. */
export interface PostgresTaskStoreOptions {
  /** The pool that statements run on, such as a `Pool` of `pg`. Yours: the store never ends it. */
  readonly pool: PostgresPool;
  /** The schema of the tables: 1 to 48 letters, digits and `_`, not `pg_…`. @default "longjobs" */
  readonly schema?: string | undefined;
  /**
   * Makes a client, not yet connected, on which changes by other processes are heard at once, such as
   * `() => new Client(url)`. It must reach the server itself: a transaction pooler delivers no notifications. Give it to
   * every store of the schema, or to none. @default none: changes by others are looked for every `watchPollMs`
   */
  readonly listen?: (() => PostgresListenClient | Promise<PostgresListenClient>) | undefined;
  /**
   * Give each statement a name, so that a connection parses it once. Needs connections that keep their session: no
   * transaction pooler, or one that knows of prepared statements. @default false
   */
  readonly preparedStatements?: boolean | undefined;
  /** How long one call may take, the wait for a connection included, in milliseconds. @default 10_000 */
  readonly deadlineMs?: number | undefined;
  /** The largest record, in bytes of its JSON text; at most 256 MiB. @default 8 MiB */
  readonly maxRecordBytes?: number | undefined;
  /** How often watched tasks are looked at while nothing is heard of them, in milliseconds. @default 1_000 */
  readonly watchPollMs?: number | undefined;
  /**
   * How often the store checks that it hears itself, in milliseconds; watched tasks are looked at as often.
   * @default 5_000
   */
  readonly echoMs?: number | undefined;
  /** Failures of the background are reported at most this often, each kind for itself, in milliseconds. @default 60_000 */
  readonly reportIntervalMs?: number | undefined;
  /** Where failures of the background go. @default the global `reportError`, else the console */
  readonly onError?: ErrorListener | undefined;
  /** From 0 up to 1, for the jitter of retries. @default Math.random */
  readonly random?: (() => number) | undefined;
}

/** {@link PostgresTaskStoreOptions}, checked and with their defaults. */
export interface ResolvedOptions {
  readonly pool: PostgresPool;
  readonly schema: string;
  readonly listen: PostgresTaskStoreOptions["listen"];
  readonly preparedStatements: boolean;
  readonly deadlineMs: number;
  readonly maxRecordBytes: number;
  readonly watchPollMs: number;
  readonly echoMs: number;
  readonly reportIntervalMs: number;
  readonly onError: ErrorListener | undefined;
  readonly random: () => number;
}

const MIB = 1024 * 1024;

/** A timer of Node that is set later than this fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** Quoted wherever it is used; the pattern keeps names that nobody can mistype or confuse. */
const schemaPattern = /^(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/** Checks every option once, before anything is touched. @throws TypeError or RangeError that names the option. */
export function resolveOptions(options: PostgresTaskStoreOptions): ResolvedOptions {
  if (typeof (options as Partial<PostgresTaskStoreOptions> | null)?.pool?.connect !== "function") {
    throw new TypeError("pool must be a pool of pg: new PostgresTaskStore({ pool: new Pool(…) }).");
  }
  const schema = options.schema ?? "longjobs";
  if (typeof schema !== "string" || !schemaPattern.test(schema)) {
    throw new TypeError("schema must be 1 to 48 letters, digits and _, and must not start with pg_.");
  }
  const preparedStatements = options.preparedStatements ?? false;
  if (typeof preparedStatements !== "boolean")
    throw new TypeError("preparedStatements must be true or false.");
  const { listen, onError, random } = options;
  if (listen !== undefined && typeof listen !== "function") {
    throw new TypeError("listen must be a function that makes a client: () => new Client(…).");
  }
  if (onError !== undefined && typeof onError !== "function")
    throw new TypeError("onError must be a function.");
  if (random !== undefined && typeof random !== "function") throw new TypeError("random must be a function.");
  return {
    pool: options.pool,
    schema,
    listen,
    preparedStatements,
    deadlineMs: integer("deadlineMs", options.deadlineMs ?? 10_000, MAX_TIMER_MS),
    // The text of a record is put together by the server, where a text ends at 1 GiB.
    maxRecordBytes: integer("maxRecordBytes", options.maxRecordBytes ?? 8 * MIB, 256 * MIB),
    watchPollMs: integer("watchPollMs", options.watchPollMs ?? 1_000, MAX_TIMER_MS),
    echoMs: integer("echoMs", options.echoMs ?? 5_000, MAX_TIMER_MS),
    reportIntervalMs: integer("reportIntervalMs", options.reportIntervalMs ?? 60_000, MAX_TIMER_MS),
    onError,
    random: random ?? Math.random,
  };
}

function integer(name: string, value: number, most: number): number {
  if (!Number.isSafeInteger(value) || value < 1 || value > most) {
    throw new RangeError(`${name} must be an integer from 1 to ${most}.`);
  }
  return value;
}
