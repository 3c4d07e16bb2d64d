import type { TaskStore } from "@longjobs/core";

/** A fresh, isolated store, and what its factory can do with it. */
export interface StoreUnderTest {
  readonly store: TaskStore;
  /** Moves the store's clock forward. Time checks need this, or {@link StoreUnderTest.realTime}. */
  readonly advanceTime?: (ms: number) => Promise<void> | void;
  /** True when the clock cannot be moved: time checks then use short TTLs and wait for what must happen. */
  readonly realTime?: boolean;
  /** Closes the store and opens the same data again. The profile `durable` needs it. */
  readonly reopen?: () => Promise<TaskStore> | TaskStore;
  /** Opens another handle on the same backing data. The profile `shared` needs it. */
  readonly second?: () => Promise<TaskStore> | TaskStore;
  /** Abandons the store without closing it, as a killed process does, and opens the same data again. */
  readonly crash?: () => Promise<TaskStore> | TaskStore;
  /**
   * Makes the backend fail: from now on writes are lost, or their replies are, until the returned function
   * repairs it. Optional, as `crash` is.
   */
  readonly fault?: () => Promise<Repair> | Repair;
  /** The largest record the store takes, in bytes. @default 8 MiB */
  readonly maxRecordBytes?: number;
  /** Removes what the factory made. Called after the suite has closed its handles. */
  readonly dispose?: () => Promise<void> | void;
}

/** Ends a fault. When it has resolved, nothing that was sent before is still under way. */
export type Repair = () => Promise<void> | void;

/** Makes a {@link StoreUnderTest}; called once for each check, and never the same store twice. */
export type StoreFactory = () => Promise<StoreUnderTest> | StoreUnderTest;
