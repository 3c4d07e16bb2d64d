import type { ErrorListener } from "@longjobs/core";
import type { RedisClusterClient, RedisConnection } from "./client.ts";

/** Options of {@link RedisTaskStore}. */
export interface RedisTaskStoreOptions {
  /** An ioredis client, `Redis` or `Cluster`. It stays yours: the store never closes it. */
  readonly client: RedisConnection | RedisClusterClient;
  /** What every key of this store begins with; without braces. Stores with one prefix share their tasks. @default "longjobs" */
  readonly keyPrefix?: string | undefined;
  /** How long one command may take before its call rejects with `store_unavailable`, in milliseconds. @default 5_000 */
  readonly commandTimeoutMs?: number | undefined;
  /** The largest record, in bytes of its JSON text; at most 256 MiB. @default 8 MiB */
  readonly maxRecordBytes?: number | undefined;
  /** How often watched tasks are looked at while nothing is heard of them, in milliseconds. @default 1_000 */
  readonly watchPollMs?: number | undefined;
  /** Where interrupted notifications and other failures that no caller waits for go. @default the global `reportError`, else the console */
  readonly onError?: ErrorListener | undefined;
}

export interface ResolvedOptions {
  readonly client: RedisConnection | RedisClusterClient;
  readonly keyPrefix: string;
  readonly commandTimeoutMs: number;
  readonly maxRecordBytes: number;
  readonly watchPollMs: number;
  readonly onError: ErrorListener | undefined;
}

const MIB = 1024 * 1024;

/** Checks every option once. @throws TypeError or RangeError that names the option. */
export function resolveOptions(options: RedisTaskStoreOptions): ResolvedOptions {
  if (typeof options !== "object" || options === null) throw new TypeError("client is required.");
  const { client, keyPrefix = "longjobs", onError } = options;
  if (typeof (client as { evalsha?: unknown } | undefined)?.evalsha !== "function") {
    throw new TypeError("client must be an ioredis client.");
  }
  // The first braces of a key decide its slot: they are the shard's.
  if (typeof keyPrefix !== "string" || keyPrefix === "" || /[{}]/.test(keyPrefix)) {
    throw new TypeError("keyPrefix must be a text without braces that is not empty.");
  }
  if (onError !== undefined && typeof onError !== "function")
    throw new TypeError("onError must be a function.");
  return {
    client,
    keyPrefix,
    // Beyond 2^31 - 1 ms a timer fires at once.
    commandTimeoutMs: integerIn("commandTimeoutMs", options.commandTimeoutMs ?? 5_000, 2 ** 31 - 1),
    // A value of Redis holds 512 MB, and a text may take three bytes where it has one unit.
    maxRecordBytes: integerIn("maxRecordBytes", options.maxRecordBytes ?? 8 * MIB, 256 * MIB),
    watchPollMs: integerIn("watchPollMs", options.watchPollMs ?? 1_000, 2 ** 31 - 1),
    onError,
  };
}

function integerIn(name: string, value: number, most: number): number {
  if (!Number.isSafeInteger(value) || value < 1 || value > most) {
    throw new RangeError(`${name} must be an integer from 1 to ${most}.`);
  }
  return value;
}
