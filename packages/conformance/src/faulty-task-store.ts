import {
  canLease,
  canWatch,
  isExclusive,
  type ClaimOptions,
  type ExclusiveTaskStore,
  type HeldLease,
  type LeasingTaskStore,
  type TaskPatch,
  type TaskRecord,
  type TaskStore,
  type WatchableTaskStore,
} from "@longjobs/core";

/** One call that passes through a {@link faultyTaskStore}. */
export interface StoreCall {
  readonly method: "create" | "get" | "update" | "sweep" | "close" | "watch" | "claim" | "renew";
  /** Of `create`, `get`, `update` and `watch`. */
  readonly taskId?: string;
  /** Of `create`. */
  readonly record?: TaskRecord;
  /** Of `update`. */
  readonly patch?: TaskPatch;
  /** Of `update`. */
  readonly expectedVersion?: number;
  /** Of `claim`. */
  readonly owner?: string;
  /** Of `claim`. */
  readonly options?: ClaimOptions;
  /** Of `renew`. */
  readonly leases?: readonly HeldLease[];
  /** Of `claim` and `renew`. */
  readonly leaseMs?: number;
  /** Which call of this method it is: 1 is the first. */
  readonly count: number;
}

/** What goes wrong, and when. Each hook may throw, or return a promise that delays the call. */
export interface FaultPlan {
  /** Before the store sees the call: throw, and nothing was committed; wait, and calls are late or change order. */
  readonly before?: (call: StoreCall) => Promise<void> | void;
  /** After the store has done it: throw, and the caller gets an error for a write that was committed. */
  readonly after?: (call: StoreCall) => Promise<void> | void;
  /**
   * True to make the call a second time after it succeeded, as a driver does that resends a write whose reply
   * was lost. The caller gets the outcome of the second.
   */
  readonly repeat?: (call: StoreCall) => boolean;
}

/**
 * A store with faults on purpose, for tests of what stands above a store. It has the optional capabilities of
 * the store it wraps, and without hooks it behaves as that store.
 */
export function faultyTaskStore(store: TaskStore, plan: FaultPlan): TaskStore {
  const counts = new Map<StoreCall["method"], number>();
  const passThrough = async <T>(call: Omit<StoreCall, "count">, forward: () => Promise<T>): Promise<T> => {
    const count = (counts.get(call.method) ?? 0) + 1;
    counts.set(call.method, count);
    const counted: StoreCall = { ...call, count };
    await plan.before?.(counted);
    let outcome = await forward();
    if (plan.repeat?.(counted) === true) outcome = await forward();
    await plan.after?.(counted);
    return outcome;
  };

  const faulty: TaskStore & Partial<WatchableTaskStore & LeasingTaskStore & ExclusiveTaskStore> = {
    create: (record) =>
      passThrough({ method: "create", taskId: record.taskId, record }, () => store.create(record)),
    get: (taskId) => passThrough({ method: "get", taskId }, () => store.get(taskId)),
    update: (taskId, patch, expectedVersion) =>
      passThrough({ method: "update", taskId, patch, expectedVersion }, () =>
        store.update(taskId, patch, expectedVersion),
      ),
    sweep: () => passThrough({ method: "sweep" }, () => store.sweep()),
    close: () => passThrough({ method: "close" }, () => store.close()),
    ...(canWatch(store)
      ? {
          watch: (taskId: string, onChange: () => void) =>
            passThrough({ method: "watch", taskId }, () => store.watch(taskId, onChange)),
        }
      : {}),
    ...(canLease(store)
      ? {
          claim: (owner: string, leaseMs: number, options: ClaimOptions) =>
            passThrough({ method: "claim", owner, leaseMs, options }, () =>
              store.claim(owner, leaseMs, options),
            ),
          renew: (leases: readonly HeldLease[], leaseMs: number) =>
            passThrough({ method: "renew", leases, leaseMs }, () => store.renew(leases, leaseMs)),
        }
      : {}),
    ...(isExclusive(store) ? { exclusive: true as const } : {}),
  };
  return faulty;
}
