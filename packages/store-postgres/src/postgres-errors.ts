import { isLongJobsError, LongJobsError } from "@longjobs/core";

/** What an error of a statement means for the one who ran it. */
export interface Fault {
  readonly error: LongJobsError;
  /** The server has undone the statement, and it may succeed at once when it is sent again. */
  readonly sendAgain: boolean;
  /** The connection is of no use any more. */
  readonly isBroken: boolean;
}

/** SQLSTATEs of which the server promises that the statement was undone and that trying again makes sense. */
const transient: ReadonlySet<string> = new Set(["40001", "40P01"]);

/** SQLSTATEs of a prepared statement that the server no longer has, or has otherwise: it did not run. */
const preparedStatementGone: ReadonlySet<string> = new Set(["26000", "42P05", "0A000"]);

/** SQLSTATEs, or their classes, after which a connection is replaced: its server is going, or is not the primary. */
const brokenClasses: readonly string[] = ["08", "57P", "25006", ...preparedStatementGone];

/** Reads an error of `pg`, by SQLSTATE, never by its text. */
export function judgeFault(error: unknown): Fault {
  if (isLongJobsError(error)) return { error, sendAgain: false, isBroken: false };
  const state = sqlState(error);
  return {
    error: toStoreError(error, state),
    sendAgain: state !== undefined && (transient.has(state) || preparedStatementGone.has(state)),
    // An error without a SQLSTATE is one of the connection.
    isBroken: state === undefined || brokenClasses.some((broken) => state.startsWith(broken)),
  };
}

/** The call ran into its deadline. */
export function deadlineError(deadlineMs: number): LongJobsError {
  return unavailable(`did not answer within ${deadlineMs} ms`, true, undefined);
}

/** LISTEN was acknowledged, and a notification of our own did not come. */
export function notHeard(): LongJobsError {
  return unavailable(
    "does not deliver notifications to the client of `listen`, which must reach the primary itself, not a transaction pooler",
    true,
    undefined,
  );
}

/** The tables were made by a later version of this package. */
export function schemaTooNew(schema: string, found: number, known: number): LongJobsError {
  return new LongJobsError(
    "schema_too_new",
    `The schema ${schema} is at version ${found}; this package knows ${known}. Update @longjobs/store-postgres.`,
    { partial: { format: found } },
  );
}

/** A server that this package cannot work with. */
export function unsuitableServer(fault: string): LongJobsError {
  return unavailable(fault, false, undefined);
}

/** What is stored for a task cannot be read. */
export function corruptRecord(subject: string, cause?: unknown): LongJobsError {
  return new LongJobsError("record_corrupt", `What is stored for ${subject} is not a record.`, {
    recoveryHint: "Restore it from a backup, or create a new task.",
    ...(cause === undefined ? {} : { cause }),
  });
}

function toStoreError(error: unknown, state: string | undefined): LongJobsError {
  if (state === undefined) return unavailable("cannot be reached", true, error);
  if (state === "53100") {
    return new LongJobsError(
      "no_space",
      "The disk of the Postgres server is full; nothing was written. Free space and repeat the call.",
      { retryable: true, cause: error },
    );
  }
  if (state.startsWith("54")) {
    return new LongJobsError(
      "record_too_large",
      `Postgres cannot hold a value of this size (${state}); nothing was written. Store large values elsewhere and keep a reference.`,
      { cause: error },
    );
  }
  if (state === "XX001" || state === "XX002") return corruptRecord("this call", error);
  if (state === "42P01" || state === "3F000" || state === "42703") {
    return unavailable(`has no tables of this version (${state}); call migrate() first`, true, error);
  }
  const retryable = !hopeless.some((hopelessClass) => state.startsWith(hopelessClass));
  return unavailable(`refused the statement (${state})`, retryable, error);
}

/** Classes of SQLSTATEs that no repetition mends: rights, names, passwords, syntax. */
const hopeless: readonly string[] = ["42", "28", "3D"];

function unavailable(fault: string, retryable: boolean, cause: unknown): LongJobsError {
  return new LongJobsError(
    "store_unavailable",
    `The Postgres server ${fault}; read the task again before repeating the call.`,
    { retryable, ...(cause === undefined ? {} : { cause }) },
  );
}

/** Only errors of the server carry a severity; system errors have codes such as EPIPE, of the same form. */
function sqlState(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof code === "string" && typeof severity === "string" ? code : undefined;
}
