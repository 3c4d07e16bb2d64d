import { MemoryTaskStore, type TaskStore } from "@longjobs/core";
import type { Tasks, TasksOptions } from "../create-tasks.ts";
import { Life } from "./life.ts";
import { SimulatedClient, type SimulatedClientOptions } from "./simulated-client.ts";
import { TestClock } from "./test-clock.ts";

/** Options of {@link TaskHarness.start}. */
export interface TaskHarnessOptions extends Omit<
  TasksOptions,
  "store" | "now" | "monotonicNow" | "schedule"
> {
  /** Registers the tools that are tested, in each new process. */
  readonly register: (tasks: Tasks) => void;
  /**
   * What outlives the crashes, as a disk does. Give a store of your own the clock that it is called with; the harness does not
   * close it. @default a `MemoryTaskStore`
   */
  readonly store?: (clock: TestClock) => TaskStore | Promise<TaskStore>;
}

/**
 * A server with your tools on a clock that you move, which can crash and be started again: for testing in one file what
 * becomes of a tool's work. It has no transport and no SDK; its clients are simulated.
 */
export class TaskHarness {
  readonly clock: TestClock;
  readonly store: TaskStore;
  /** What was reported in the background, oldest first. A test that expects none says so. */
  readonly errors: unknown[] = [];
  readonly #options: TaskHarnessOptions;
  #life: Life;

  private constructor(clock: TestClock, store: TaskStore, options: TaskHarnessOptions) {
    this.clock = clock;
    this.store = store;
    this.#options = options;
    this.#life = this.#begin();
  }

  /** Starts the server. */
  static async start(options: TaskHarnessOptions): Promise<TaskHarness> {
    const clock = new TestClock();
    const store = (await options.store?.(clock)) ?? new MemoryTaskStore({ now: clock.now });
    const harness = new TaskHarness(clock, store, options);
    await harness.tasks.recover();
    return harness;
  }

  /** The server that lives now, or lived last. */
  get tasks(): Tasks {
    return this.#life.tasks;
  }

  /** A client of whichever process lives when it calls. */
  client(options?: SimulatedClientOptions): SimulatedClient {
    return new SimulatedClient(() => this.#life, this.clock, options);
  }

  /**
   * Kills the server in the middle of whatever it does. Its handlers are not told: what they call on their task never
   * returns, and nothing they do reaches the store.
   */
  crash(): void {
    this.#life.kill();
    this.clock.clearTimers();
  }

  /**
   * Starts a new process on what the old one left, after a crash if there was none yet. The clock is moved by a lease first, so
   * that what the dead process held is free; then the new one has looked for it.
   */
  async restart(): Promise<void> {
    if (!this.#life.end.aborted) this.crash();
    const old = this.#life;
    await this.clock.advance(this.#options.leaseMs ?? defaultLeaseMs);
    this.#life = this.#begin();
    await this.tasks.recover();
    old.handOver();
  }

  /** Moves the clock, with all that is due meanwhile: heartbeats, deadlines, expiry, sweeps. */
  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Shuts the server down in good order. Handlers that do not stop are left behind. */
  async close(): Promise<void> {
    if (this.#life.end.aborted) return;
    const closing = this.tasks.close({ shutdownGraceMs: 0 });
    await this.clock.advance(closeMs);
    await closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #begin(): Life {
    const { register, store: _store, onError, ...options } = this.#options;
    const { clock } = this;
    const life = new Life(this.store, {
      scope: null,
      ...options,
      now: clock.now,
      monotonicNow: clock.now,
      schedule: clock.schedule,
      onError: (error) => {
        this.errors.push(error);
        onError?.(error);
      },
    });
    register(life.tasks);
    return life;
  }
}

/** The engine's own default. */
const defaultLeaseMs = 30_000;
/** More than a shutdown takes whose handlers do not stop. */
const closeMs = 1_000;
