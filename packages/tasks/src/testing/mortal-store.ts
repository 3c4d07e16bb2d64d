import type { TaskStore } from "@longjobs/core";

/** A store as one process sees it, and the end of that process. */
export interface MortalStore {
  readonly store: TaskStore;
  /** From now on no call is answered, and none reaches the store: what was under way may have happened. */
  readonly cut: () => void;
}

/** What a dead process never hears. */
function never(): Promise<never> {
  return new Promise<never>(() => undefined);
}

/** The view of one process on a store that outlives it. Optional capabilities are passed on. */
export function mortalStore(store: TaskStore): MortalStore {
  let alive = true;
  const view = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        if (!alive) return never();
        const given = args.map((arg) =>
          typeof arg === "function"
            ? (...hint: unknown[]) => (alive ? (arg(...hint) as unknown) : undefined)
            : arg,
        );
        try {
          const answer: unknown = await Reflect.apply(member, target, given);
          return alive ? answer : await never();
        } catch (error) {
          if (alive) throw error;
          return never();
        }
      };
    },
  });
  return {
    store: view,
    cut: () => {
      alive = false;
    },
  };
}
