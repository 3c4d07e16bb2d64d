import { afterEach } from "vitest";

import {
  canLease,
  canWatch,
  LongJobsError,
  type LeasingTaskStore,
  type TaskStore,
  type WatchableTaskStore,
} from "../../src/index.ts";

/** A store as one process sees it, until that process dies. */
export interface MortalStore {
  readonly store: TaskStore;
  readonly isDead: () => boolean;
  /** From now on no call reaches the store, and none is answered: what a killed process does and hears. */
  readonly die: () => void;
  /** Refuses the calls of the dead, so that nothing of them is left. Happens by itself after the test. */
  readonly bury: () => void;
}

const unburied = new Set<() => void>();

afterEach(() => {
  for (const bury of unburied) bury();
});

export function mortalStore(inner: TaskStore): MortalStore {
  let dead = false;
  let isBuried = false;
  const lost: ((error: Error) => void)[] = [];
  const alive = <Value>(call: () => Promise<Value>): Promise<Value> => {
    if (isBuried) return Promise.reject(gone());
    return dead ? new Promise((_resolve, reject) => lost.push(reject)) : call();
  };
  const store: TaskStore & Partial<WatchableTaskStore & LeasingTaskStore> = {
    create: (record) => alive(() => inner.create(record)),
    get: (taskId) => alive(() => inner.get(taskId)),
    update: (taskId, patch, expectedVersion) => alive(() => inner.update(taskId, patch, expectedVersion)),
    sweep: () => alive(() => inner.sweep()),
    close: async () => undefined,
    ...(canWatch(inner)
      ? {
          watch: (taskId: string, onChange: () => void) =>
            alive(() =>
              inner.watch(taskId, () => {
                if (!dead) onChange();
              }),
            ),
        }
      : {}),
    ...(canLease(inner)
      ? {
          claim: (...call: Parameters<LeasingTaskStore["claim"]>) => alive(() => inner.claim(...call)),
          renew: (...call: Parameters<LeasingTaskStore["renew"]>) => alive(() => inner.renew(...call)),
        }
      : {}),
  };
  const bury = (): void => {
    unburied.delete(bury);
    isBuried = dead;
    for (const reject of lost.splice(0)) reject(gone());
  };
  unburied.add(bury);
  return {
    store,
    isDead: () => dead,
    die: () => {
      dead = true;
    },
    bury,
  };
}

function gone(): LongJobsError {
  return new LongJobsError("store_closed", "This process is dead.");
}
