import type {
  Dispatch,
  RecoveryRules,
  TaskAttempt,
  TaskHandler,
  TaskLifecycleOptions,
  TaskRecord,
  TaskStore,
} from "../../src/index.ts";
import { startEngine, type Engine } from "./engine.ts";
import { mortalStore } from "./mortal-store.ts";

/** A tool of a worker: how it goes on after an interruption, and what it does. */
export interface WorkerTool extends Partial<RecoveryRules> {
  readonly handler?: TaskHandler;
}

/** A run that a worker was told to begin. */
export interface Start {
  readonly task: TaskAttempt;
  readonly record: TaskRecord;
}

/** An engine that goes on with the tasks of its tools. */
export interface Worker extends Engine {
  /** What it was told to run, in order. */
  readonly starts: Start[];
  /** Creates a task of a tool and runs its handler, as a call would. */
  readonly call: (tool: string, args?: TaskRecord["data"]) => Promise<TaskAttempt>;
  /** Kills its process: no call of it reaches the store any more. */
  readonly die: () => void;
  readonly isDead: () => boolean;
}

/** Options of {@link startWorker}: those of the engine, and its tools. */
export interface WorkerOptions extends Partial<TaskLifecycleOptions> {
  readonly store: TaskStore;
  readonly tools?: { readonly [tool: string]: WorkerTool };
  readonly dispatch?: (dispatch: Dispatch) => Promise<void>;
}

/** A handler that goes on until its signal says why not. */
export function untilAborted({ signal }: TaskAttempt): Promise<never> {
  return new Promise((_resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
  });
}

export function startWorker({ tools = {}, dispatch, store, ...options }: WorkerOptions): Worker {
  const mortal = mortalStore(store);
  const starts: Start[] = [];
  const errors: unknown[] = [];
  const handlerOf = (tool: string | undefined): TaskHandler => tools[tool ?? ""]?.handler ?? untilAborted;
  const rules = new Map(
    Object.entries(tools).map(([tool, { onInterrupted = "resume", maxAttempts = 3 }]) => [
      tool,
      { onInterrupted, maxAttempts },
    ]),
  );
  const { lifecycle } = startEngine({
    ...options,
    store: mortal.store,
    // Nobody hears what the dead have to say.
    onError: (error) => mortal.isDead() || errors.push(error),
    runner: {
      tools: () => rules,
      start: (task, record) => {
        starts.push({ task, record });
        return lifecycle.run(task, handlerOf(record.work?.tool));
      },
      dispatch,
    },
  });
  return {
    lifecycle,
    store: mortal.store,
    errors,
    starts,
    die: mortal.die,
    isDead: mortal.isDead,
    call: async (tool, args = null) => {
      const task = lifecycle.begin({ work: { tool, arguments: args } });
      await task.promote();
      void lifecycle.run(task, handlerOf(tool));
      return task;
    },
  };
}
