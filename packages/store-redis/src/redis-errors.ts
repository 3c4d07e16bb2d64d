import { isLongJobsError, LongJobsError, type LongJobsErrorCode } from "@longjobs/core";

/** What a refusal by the server means, by the word its error begins with. */
interface Refusal {
  readonly code: LongJobsErrorCode;
  readonly retryable: boolean;
  readonly message: string;
}

const unavailable = (retryable: boolean, message: string): Refusal => ({
  code: "store_unavailable",
  retryable,
  message,
});

const refusals: Readonly<Record<string, Refusal>> = {
  OOM: {
    code: "no_space",
    retryable: true,
    message: "Redis is out of memory; nothing was written. Raise maxmemory or free keys.",
  },
  READONLY: unavailable(true, "Redis answers as a read-only replica; connect to the primary."),
  LOADING: unavailable(true, "Redis is loading its data; call again."),
  BUSY: unavailable(true, "Redis is busy with a script that takes long; call again."),
  MASTERDOWN: unavailable(true, "The replica has lost its primary; call again."),
  CLUSTERDOWN: unavailable(true, "The Redis Cluster is down or a slot has no node; call again."),
  TRYAGAIN: unavailable(true, "A slot of the Redis Cluster is on the move; call again."),
  NOREPLICAS: unavailable(true, "Redis has too few replicas in reach to take a write; call again."),
  MISCONF: unavailable(true, "Redis cannot save its data and takes no writes; look at its log."),
  UNBLOCKED: unavailable(true, "Redis changed its role during the command; call again."),
  MOVED: unavailable(false, "The server is a node of a Redis Cluster; give the store a Cluster client."),
  ASK: unavailable(false, "The server is a node of a Redis Cluster; give the store a Cluster client."),
  CROSSSLOT: unavailable(
    false,
    "Redis found keys of one call in two slots; check the keyPrefix of the client for braces.",
  ),
  NOAUTH: unavailable(false, "Redis wants a password; give it to the client."),
  WRONGPASS: unavailable(false, "Redis refused the password of the client."),
  NOPERM: unavailable(
    false,
    "The user of the client may not run the scripts of the store; extend its rights.",
  ),
  WRONGTYPE: unavailable(
    false,
    "A key of the store holds something else; give the store a keyPrefix of its own.",
  ),
};

/**
 * An error of the driver or of the server as one of ours. A failure without a word that is known leaves open
 * whether a write happened.
 */
export function toStoreError(error: unknown): LongJobsError {
  if (isLongJobsError(error)) return error;
  const cause = withoutArguments(error);
  const text = cause instanceof Error ? cause.message : String(cause);
  const refusal = refusals[wordOf(text)];
  if (refusal === undefined) {
    return new LongJobsError(
      "store_unavailable",
      `Redis did not take the command; a write may or may not have happened. ${text.slice(0, 200)}`,
      { retryable: true, cause },
    );
  }
  return new LongJobsError(refusal.code, refusal.message, { retryable: refusal.retryable, cause });
}

/** A command that had no answer in time. */
export function timedOut(commandTimeoutMs: number): LongJobsError {
  return new LongJobsError(
    "store_unavailable",
    `Redis did not answer within ${commandTimeoutMs} ms; a write may or may not have happened.`,
    { retryable: true },
  );
}

/** A command that was never sent. */
export function notConnected(commandTimeoutMs: number): LongJobsError {
  return new LongJobsError(
    "store_unavailable",
    `The client had no connection to Redis for ${commandTimeoutMs} ms; nothing was sent.`,
    { retryable: true },
  );
}

/** A client that was closed for good. */
export function clientEnded(): LongJobsError {
  return new LongJobsError(
    "store_unavailable",
    "The Redis client has been closed; nothing was sent. Keep it open as long as the store.",
  );
}

/** A call that met another index than the task was said to be in, each time it tried. */
export function indexesKeptChanging(taskIds: readonly string[]): LongJobsError {
  return new LongJobsError(
    "store_unavailable",
    `The tool of task ${taskIds[0]} changed each time its lease was looked up; nothing was written. Call again.`,
    { retryable: true },
  );
}

/** An answer that no script of ours gives: something between us and the server made it. */
export function unknownReply(code: unknown): LongJobsError {
  return new LongJobsError(
    "store_unavailable",
    `Redis answered a script with ${JSON.stringify(code)?.slice(0, 100)}, which it never returns; the write may or may not have happened.`,
    { retryable: true },
  );
}

/** True for the one refusal that is answered by sending the script itself. */
export function isUnknownScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

/** The first word of an error, which is its code. Before Redis 7 an error inside of a script was wrapped in another. */
function wordOf(text: string): string {
  return /^(?:ERR .*?-)?([A-Z]+)\b/.exec(text)?.[1] ?? "";
}

/** The driver hangs the whole command on its error; what is in there belongs in no log. */
function withoutArguments(error: unknown): unknown {
  if (error instanceof Error && "command" in error) delete error.command;
  return error;
}
