import type { JsonLimits } from "./normalize-json.ts";
import { defaultJsonLimits } from "./normalize-json.ts";
import { reportBackgroundError, type ErrorListener } from "./report-error.ts";
import type { InputRequest, InputResponse } from "./task-record.ts";
import type { TaskRunner } from "./task-runner.ts";
import { Timers, type Schedule } from "./timers.ts";
import type { TaskStore } from "./task-store.ts";

/** Options of {@link TaskLifecycle}. */
export interface TaskLifecycleOptions {
  /** Where the tasks are kept. The lifecycle never closes it. */
  readonly store: TaskStore;
  /** How long a finished task stays readable, in milliseconds; `null` keeps it for ever. @default 24 hours */
  readonly retentionMs?: number | null;
  /** The longest retention that a single task may ask for; `null` means no bound. @default 30 days, or `retentionMs` if longer */
  readonly maxRetentionMs?: number | null;
  /** The polling interval suggested to clients, in milliseconds; `null` suggests none. @default 1_000 */
  readonly pollIntervalMs?: number | null;
  /** How long a lease lasts without a heartbeat, in milliseconds. @default 30_000 */
  readonly leaseMs?: number;
  /** How many handlers may run here at once; more wait their turn, with their tasks held. `null` for any number. @default null */
  readonly maxConcurrentRuns?: number | null;
  /**
   * How long a lease waits for a worker elsewhere before its run is dispatched again, in milliseconds; only with a
   * `runner` that dispatches. @default 60_000
   */
  readonly dispatchMs?: number;
  /**
   * After how many milliseconds without a sign of life a task is ended as interrupted by whoever asks about it, when
   * nobody holds it and no tool of its name is registered here. @default 24 hours
   */
  readonly orphanMaxMs?: number;
  /** Who runs the tasks that this engine takes over. @default nobody: none is taken over by itself */
  readonly runner?: TaskRunner;
  /** How often expired tasks are swept, in milliseconds; `null` never sweeps by itself. @default 60_000 */
  readonly sweepIntervalMs?: number | null;
  /**
   * How often the engine looks for itself while somebody waits, in milliseconds. On a store that watches it looks more rarely the
   * longer a wait has lasted: after a sixtieth of it, at most a lease. @default 1_000
   */
  readonly waitPollMs?: number;
  /**
   * How often the progress of one task is written while its handler keeps reporting faster, in milliseconds; a
   * burst of 64 reports is written as it comes. 0 for no limit.
   * @default 200
   */
  readonly progressIntervalMs?: number;
  /** Why a question is malformed, or `undefined` when it is well formed. @default accepts any */
  readonly validateRequest?: (request: InputRequest) => string | undefined;
  /** Why an answer does not fit its question, or `undefined` when it does. @default accepts any object */
  readonly validateAnswer?: (request: InputRequest, response: InputResponse) => string | undefined;
  /** The largest checkpoint, in bytes of JSON text: it is a cursor, not the work itself. @default 65_536 */
  readonly maxCheckpointBytes?: number;
  /** Bounds of every value that comes in. */
  readonly jsonLimits?: Partial<JsonLimits>;
  /**
   * Makes the ids of tasks that are created with an idempotency key; at least 32 characters, the same on every instance on
   * this store. Another secret makes every key a new one.
   * @default random: the first instance keeps it in the store, and all others read it there
   */
  readonly idempotencySecret?: string;
  /** Where failures go that no caller waits for. @default the global `reportError`, else the console */
  readonly onError?: ErrorListener;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
  /** Milliseconds that never go back, from any start: measures leases and run deadlines. @default performance.now */
  readonly monotonicNow?: () => number;
  /**
   * Runs something after so many milliseconds, without keeping the process alive; the returned function cancels it. For tests
   * on a clock of their own. @default setTimeout
   */
  readonly schedule?: Schedule;
  /** Unguessable ids, for tasks, leases and fresh question keys. @default crypto.randomUUID */
  readonly randomId?: () => string;
  /** In [0, 1): spreads retries. @default Math.random */
  readonly random?: () => number;
}

/** {@link TaskLifecycleOptions} with every default filled in. */
export interface ResolvedLifecycleOptions {
  readonly store: TaskStore;
  readonly retentionMs: number | null;
  readonly maxRetentionMs: number | null;
  readonly pollIntervalMs: number | null;
  readonly leaseMs: number;
  readonly maxConcurrentRuns: number | null;
  readonly dispatchMs: number;
  readonly orphanMaxMs: number;
  readonly runner: TaskRunner | undefined;
  readonly sweepIntervalMs: number | null;
  readonly waitPollMs: number;
  readonly progressIntervalMs: number;
  readonly validateRequest: (request: InputRequest) => string | undefined;
  readonly validateAnswer: (request: InputRequest, response: InputResponse) => string | undefined;
  readonly maxCheckpointBytes: number;
  readonly jsonLimits: JsonLimits;
  readonly idempotencySecret: string | undefined;
  readonly reportError: ErrorListener;
  readonly now: () => number;
  readonly monotonicNow: () => number;
  readonly timers: Timers;
  readonly randomId: () => string;
  readonly random: () => number;
}

const dayMs = 24 * 60 * 60 * 1000;

/** Timers count in a signed 32-bit number of milliseconds; a longer delay would fire at once. */
export const maxTimerMs: number = 2 ** 31 - 1;

/** Checks every option once, when the lifecycle is made. @throws TypeError, RangeError */
export function resolveLifecycleOptions(options: TaskLifecycleOptions): ResolvedLifecycleOptions {
  assertStore(options.store);
  assertFunctions(options);
  const { onError } = options;
  const retentionMs = duration("retentionMs", options.retentionMs, dayMs, { nullable: true });
  const maxRetentionMs = duration("maxRetentionMs", options.maxRetentionMs, defaultMaximum(retentionMs), {
    nullable: true,
  });
  if (maxRetentionMs !== null && (retentionMs ?? Infinity) > maxRetentionMs) {
    throw new RangeError("retentionMs must not be longer than maxRetentionMs.");
  }
  return {
    store: options.store,
    retentionMs,
    maxRetentionMs,
    pollIntervalMs: duration("pollIntervalMs", options.pollIntervalMs, 1_000, { nullable: true }),
    leaseMs: duration("leaseMs", options.leaseMs, 30_000, { min: 100, max: maxTimerMs }),
    maxConcurrentRuns:
      options.maxConcurrentRuns == null ? null : wholeNumber("maxConcurrentRuns", options.maxConcurrentRuns),
    dispatchMs: duration("dispatchMs", options.dispatchMs, 60_000, { min: 100, max: maxTimerMs }),
    orphanMaxMs: duration("orphanMaxMs", options.orphanMaxMs, dayMs),
    runner: options.runner,
    sweepIntervalMs: duration("sweepIntervalMs", options.sweepIntervalMs, 60_000, {
      nullable: true,
      max: maxTimerMs,
    }),
    waitPollMs: duration("waitPollMs", options.waitPollMs, 1_000, { max: maxTimerMs }),
    progressIntervalMs: duration("progressIntervalMs", options.progressIntervalMs, 200, {
      min: 0,
      max: maxTimerMs,
    }),
    validateRequest: options.validateRequest ?? (() => undefined),
    validateAnswer: options.validateAnswer ?? (() => undefined),
    maxCheckpointBytes: wholeNumber("maxCheckpointBytes", options.maxCheckpointBytes ?? 65_536),
    jsonLimits: resolveJsonLimits(options.jsonLimits),
    idempotencySecret: secret("idempotencySecret", options.idempotencySecret),
    reportError: (error) => reportBackgroundError(error, onError),
    now: options.now ?? Date.now,
    monotonicNow: options.monotonicNow ?? (() => performance.now()),
    timers: new Timers(options.schedule),
    randomId: options.randomId ?? (() => crypto.randomUUID()),
    random: options.random ?? Math.random,
  };
}

/** Shorter ones can be guessed by trying. */
const minSecretLength = 32;

function secret(name: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== "string") throw new TypeError(`${name} must be a string.`);
  if (value.length < minSecretLength)
    throw new RangeError(`${name} must have at least ${minSecretLength} characters.`);
  return value;
}

function resolveJsonLimits(wished: Partial<JsonLimits> = {}): JsonLimits {
  return {
    maxDepth: wholeNumber("jsonLimits.maxDepth", wished.maxDepth ?? defaultJsonLimits.maxDepth),
    maxKeys: wholeNumber("jsonLimits.maxKeys", wished.maxKeys ?? defaultJsonLimits.maxKeys),
    maxBytes: wholeNumber("jsonLimits.maxBytes", wished.maxBytes ?? defaultJsonLimits.maxBytes),
  };
}

function wholeNumber(name: string, value: number): number {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${name} must be a whole number.`);
  if (value < 1) throw new RangeError(`${name} must be at least 1.`);
  return value;
}

/** 30 days, unless the author asked for more: an explicit `retentionMs` needs no second option. */
function defaultMaximum(retentionMs: number | null): number | null {
  return retentionMs === null ? null : Math.max(30 * dayMs, retentionMs);
}

interface DurationBounds {
  readonly nullable?: boolean;
  readonly min?: number;
  readonly max?: number;
}

/** A duration in whole milliseconds; `undefined` gives the fallback, and `null` is allowed where it is said. */
export function duration(
  name: string,
  value: number | null | undefined,
  fallback: number | null,
  bounds: DurationBounds & { readonly nullable: true },
): number | null;
export function duration(
  name: string,
  value: number | null | undefined,
  fallback: number,
  bounds?: DurationBounds,
): number;
export function duration(
  name: string,
  value: number | null | undefined,
  fallback: number | null,
  bounds: DurationBounds = {},
): number | null {
  if (value === undefined) return fallback;
  if (value === null && bounds.nullable === true) return null;
  if (value === null || !Number.isSafeInteger(value)) {
    throw new TypeError(
      `${name} must be a whole number of milliseconds${bounds.nullable === true ? " or null" : ""}.`,
    );
  }
  const { min = 1, max = Number.MAX_SAFE_INTEGER } = bounds;
  if (value < min || value > max)
    throw new RangeError(`${name} must be between ${min} and ${max} milliseconds.`);
  return value;
}

const functionOptions = [
  "validateRequest",
  "validateAnswer",
  "onError",
  "now",
  "monotonicNow",
  "schedule",
  "randomId",
  "random",
] as const;

function assertFunctions(options: TaskLifecycleOptions): void {
  for (const name of functionOptions) {
    const given: unknown = options[name];
    if (given !== undefined && typeof given !== "function") {
      throw new TypeError(`${name} must be a function.`);
    }
  }
}

function assertStore(store: TaskStore): void {
  for (const method of ["create", "get", "update", "sweep", "close"] as const) {
    if (typeof (store as Partial<TaskStore> | undefined)?.[method] !== "function") {
      throw new TypeError(
        `store must have the method ${method}; pass a TaskStore such as new MemoryTaskStore().`,
      );
    }
  }
}
