import { faultyTaskStore, type StoreCall } from "@longjobs/conformance";

import type { LeasingTaskStore, TaskStore } from "../../src/index.ts";

/** A store that notes each call, and can be made to hang or to fail. */
export interface SpiedStore {
  readonly store: TaskStore;
  /** The calls since the last `take`, in order. */
  readonly take: () => StoreCall[];
  /** From now on each call that `which` picks waits until it is called again, or fails with an error it throws. */
  readonly disturb: (which: ((call: StoreCall) => Promise<void> | void) | undefined) => void;
}

export function spiedStore(inner: TaskStore): SpiedStore {
  let calls: StoreCall[] = [];
  let disturbance: ((call: StoreCall) => Promise<void> | void) | undefined;
  const store = faultyTaskStore(inner, {
    before: (call) => {
      calls.push(call);
      return disturbance?.(call);
    },
  });
  return {
    store,
    take: () => calls.splice(0),
    disturb: (which) => {
      disturbance = which;
    },
  };
}

/** How often each method was called. */
export function countCalls(calls: readonly StoreCall[]): { readonly [method: string]: number } {
  const counts: { [method: string]: number } = {};
  for (const { method } of calls) counts[method] = (counts[method] ?? 0) + 1;
  return counts;
}

/** A store that can claim and renew, and gives no hints of changes. */
export function withoutWatch(store: TaskStore & LeasingTaskStore): TaskStore & LeasingTaskStore {
  return {
    create: (record) => store.create(record),
    get: (taskId) => store.get(taskId),
    update: (taskId, patch, expectedVersion) => store.update(taskId, patch, expectedVersion),
    sweep: () => store.sweep(),
    close: () => store.close(),
    claim: (owner, leaseMs, options) => store.claim(owner, leaseMs, options),
    renew: (leases, leaseMs) => store.renew(leases, leaseMs),
  };
}

/** A store whose hints are all lost. */
export function withLostHints(store: TaskStore & LeasingTaskStore): TaskStore & LeasingTaskStore {
  return { ...withoutWatch(store), watch: async () => async () => undefined } as TaskStore & LeasingTaskStore;
}

/** A store that says it belongs to one process, as others than its engine have it: shared with other processes. */
export function shared<Store extends TaskStore>(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = name === "exclusive" ? undefined : Reflect.get(target, name, target);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
}
