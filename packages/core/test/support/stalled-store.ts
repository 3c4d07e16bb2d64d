import { canLease, canWatch, type TaskStore } from "../../src/index.ts";
import { gate } from "./turns.ts";

/** What a network holds back: what is asked, or what is answered; then the store has done it, and nobody has heard. */
export type HeldBack = "calls" | "replies";

/** A store behind a network that can stand still; what it holds back arrives when it moves again. */
export interface StalledStore {
  readonly store: TaskStore;
  readonly stall: (heldBack: HeldBack) => void;
  readonly resume: () => void;
  readonly isStalled: () => boolean;
}

export function stallableStore(inner: TaskStore): StalledStore {
  let standstill: ReturnType<typeof gate> | undefined;
  let held: HeldBack = "calls";
  const moves = async (): Promise<void> => {
    if (standstill === undefined) return;
    await standstill.opened;
    await moves();
  };
  const arrive = async <Value>(call: () => Promise<Value>): Promise<Value> => {
    if (held === "calls") await moves();
    try {
      return await call();
    } finally {
      await moves();
    }
  };
  const store: TaskStore = {
    create: (record) => arrive(() => inner.create(record)),
    get: (taskId) => arrive(() => inner.get(taskId)),
    update: (taskId, patch, version) => arrive(() => inner.update(taskId, patch, version)),
    sweep: () => arrive(() => inner.sweep()),
    close: async () => undefined,
  };
  if (canLease(inner))
    Object.assign(store, {
      claim: (...call: Parameters<typeof inner.claim>) => arrive(() => inner.claim(...call)),
      renew: (...call: Parameters<typeof inner.renew>) => arrive(() => inner.renew(...call)),
    });
  if (canWatch(inner))
    Object.assign(store, {
      watch: (taskId: string, onChange: () => void) =>
        arrive(() =>
          inner.watch(taskId, () => {
            if (standstill === undefined) onChange();
          }),
        ),
    });
  return {
    store,
    stall: (heldBack) => {
      held = heldBack;
      standstill ??= gate();
    },
    resume: () => {
      const { open } = standstill ?? { open: () => undefined };
      standstill = undefined;
      open();
    },
    isStalled: () => standstill !== undefined,
  };
}
