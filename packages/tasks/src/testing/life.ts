import type { TaskStore } from "@longjobs/core";
import { buildTasks, type BuiltTasks, type Tasks, type TasksOptions } from "../create-tasks.ts";
import type { TaskTool } from "../tool-config.ts";
import { mortalStore } from "./mortal-store.ts";
import { zodValidator } from "./zod-validator.ts";

/** One process of a server that is tested: from its start to its crash. */
export class Life {
  readonly tasks: Tasks;
  readonly tools: ReadonlyMap<string, TaskTool>;
  readonly seam: BuiltTasks["seam"];
  readonly resolveScope: BuiltTasks["resolveScope"];
  readonly #death = new AbortController();
  readonly #cut: () => void;
  readonly #succeeded: Promise<void>;
  #succeed: () => void = () => undefined;

  constructor(store: TaskStore, options: Omit<TasksOptions, "store">) {
    const mortal = mortalStore(store);
    this.#cut = mortal.cut;
    const { tasks, tools, seam, resolveScope } = buildTasks({ ...options, store: mortal.store });
    this.tasks = tasks;
    this.tools = tools;
    this.seam = seam;
    seam.useValidator(zodValidator);
    this.resolveScope = resolveScope;
    this.#succeeded = new Promise((resolve) => {
      this.#succeed = resolve;
    });
  }

  /** Aborted when the process dies. */
  get end(): AbortSignal {
    return this.#death.signal;
  }

  /** Ends the process as `SIGKILL` does: no signal, no write, no answer. What its handlers call hangs for ever. */
  kill(): void {
    this.#cut();
    this.#death.abort(new Error("The server died before it answered."));
  }

  /** Says that another process serves from now on. */
  handOver(): void {
    this.#succeed();
  }

  /** Resolves when another process serves, or the deadline is over. */
  async successor(deadline: AbortSignal): Promise<void> {
    await Promise.race([this.#succeeded, aborted(deadline)]);
  }

  /** The answer to a call, unless the process dies first. */
  async live<Answer>(answer: Promise<Answer>): Promise<Answer> {
    return Promise.race([answer, rejection(this.end)]);
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function rejection(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    const fail = (): void => reject(signal.reason as Error);
    if (signal.aborted) fail();
    signal.addEventListener("abort", fail, { once: true });
  });
}
