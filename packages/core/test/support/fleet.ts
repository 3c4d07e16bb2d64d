import {
  MemoryTaskStore,
  TaskLifecycle,
  type JsonObject,
  type TaskAttempt,
  type TaskStore,
} from "../../src/index.ts";
import { FleetReference, fleetTools, type KnownTask, type RunningHandler } from "./fleet-reference.ts";
import { mortalStore, type MortalStore } from "./mortal-store.ts";
import { accepted, question } from "./questions.ts";
import { stallableStore, type HeldBack, type StalledStore } from "./stalled-store.ts";
import { nextTurn } from "./turns.ts";
import { VirtualTime } from "./virtual-time.ts";

export const leaseMs = 30_000;
/** How often clients ask about their tasks. */
const pollMs = 7_000;
const maxTasks = 4;

/** What a handler is told to do next. */
export type Instruction =
  | { readonly do: "progress" | "checkpoint"; readonly value: number }
  | { readonly do: "ask"; readonly key: string }
  | { readonly do: "complete" | "reject" | "fail" };

interface InstructedHandler extends RunningHandler {
  readonly process: Process;
  readonly tell: (instruction: Instruction) => void;
}

/** One process: an engine, with its own clock, timers and network. */
interface Process {
  readonly lifecycle: TaskLifecycle;
  readonly mortal: MortalStore;
  readonly network: StalledStore;
  readonly killTimers: () => void;
  skewMs: number;
  isAlive: boolean;
}

/** Several processes over one store, on a clock of their own, which are compared with a reference after every moment. */
export class Fleet {
  readonly #time = new VirtualTime();
  readonly #reference = new FleetReference();
  readonly #store: TaskStore;
  readonly #processes: Process[] = [];
  readonly #running = new Set<InstructedHandler>();
  readonly #graves: (() => void)[] = [];
  /** In the end handlers go on to their end by themselves. */
  #isFinal = false;

  /** @param show What the processes see of the store. */
  constructor(size: number, show: (store: MemoryTaskStore) => TaskStore) {
    const store = new MemoryTaskStore({ now: () => this.#time.nowMs });
    this.#reference.watch(store);
    this.#store = show(store);
    for (let slot = 0; slot < size; slot += 1) this.#processes.push(this.#startProcess());
  }

  /** Runs one step of a sequence, and checks everything after it. */
  async step(act: () => Promise<void> | void): Promise<void> {
    await act();
    await this.#settleAndCheck();
  }

  /** Time goes by, while clients ask about their tasks everywhere. */
  async advance(ms: number): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= pollMs) {
      await this.#time.advance(Math.min(leftMs, pollMs), () => this.#settleAndCheck());
      for (const { lifecycle } of this.#living())
        for (const { taskId } of this.#reference.tasks) void lifecycle.getTask(taskId).catch(ignore);
      await this.#settleAndCheck();
    }
  }

  /** A call of a tool. */
  create(slot: number, tool: keyof typeof fleetTools, isStubborn: boolean): void {
    const process = this.#process(slot);
    if (!process.isAlive || this.#reference.tasks.length === maxTasks) return;
    const attempt = process.lifecycle.begin({ work: { tool } });
    this.#reference.add({ taskId: attempt.taskId, tool, isStubborn });
    const run = (): Promise<unknown> => process.lifecycle.run(attempt, (task) => this.#handle(process, task));
    // A create that never arrives, because its process dies, has made no task.
    void attempt.promote().then(run).catch(ignore);
  }

  /** Tells a handler that runs in a living process, be it the owner's or one that has not heard of its loss yet. */
  instruct(pick: number, instruction: Instruction): void {
    const running = this.#believers();
    running[pick % running.length]?.tell(instruction);
  }

  answer(slot: number, pick: number, key: string, value: number): void {
    const { lifecycle, isAlive } = this.#process(slot);
    const taskId = this.#taskId(pick);
    if (taskId === undefined || !isAlive) return;
    const response = accepted({ value });
    void lifecycle.updateTask(taskId, { [key]: response }).then((taken) => {
      if (taken.includes(key)) this.#reference.noteAcknowledged(taskId, key, response);
    }, ignore);
  }

  cancel(slot: number, pick: number): void {
    const { lifecycle, isAlive } = this.#process(slot);
    const taskId = this.#taskId(pick);
    if (taskId === undefined || !isAlive) return;
    void lifecycle.cancelTask(taskId).then(() => this.#reference.noteCancelled(taskId), ignore);
  }

  crash(slot: number): void {
    const process = this.#process(slot);
    process.isAlive = false;
    process.mortal.die();
    process.killTimers();
  }

  restart(slot: number): void {
    if (!this.#process(slot).isAlive) this.#processes[slot % this.#processes.length] = this.#startProcess();
  }

  /** A deploy: the process goes down cleanly, and another one takes its place. */
  async redeploy(slot: number, drainMs: number): Promise<void> {
    const { lifecycle, isAlive } = this.#process(slot);
    if (!isAlive) return;
    const closing = lifecycle.close({ drainMs });
    await this.#settleAndCheck();
    await this.advance(drainMs + 1_000);
    await closing;
    this.crash(slot);
    this.restart(slot);
  }

  /** Cuts a process off from its store. */
  cutOff(slot: number, heldBack: HeldBack): void {
    this.#process(slot).network.stall(heldBack);
  }

  connect(slot: number): void {
    this.#process(slot).network.resume();
  }

  /** Sets the wall clock of a process. */
  setClock(slot: number, skewMs: number): void {
    this.#process(slot).skewMs = skewMs;
  }

  /** Every process is started anew, everything works, and people answer: every task must come to its end. */
  async finish(): Promise<void> {
    this.#isFinal = true;
    for (let slot = 0; slot < this.#processes.length; slot += 1) {
      this.connect(slot);
      this.crash(slot);
      this.restart(slot);
    }
    for (let beat = 0; beat < 40 && !this.#reference.isOver; beat += 1) {
      for (const [pick, { keys }] of this.#reference.tasks.entries())
        for (const key of keys) this.answer(0, pick, key, 99);
      await this.advance(leaseMs / 3);
    }
    this.#reference.checkEnds();
  }

  async close(): Promise<void> {
    for (let slot = 0; slot < this.#processes.length; slot += 1) this.crash(slot);
    for (const bury of this.#graves) bury();
    await nextTurn();
  }

  #process(slot: number): Process {
    return this.#processes[slot % this.#processes.length] as Process;
  }

  #taskId(pick: number): string | undefined {
    const { tasks } = this.#reference;
    return tasks[pick % tasks.length]?.taskId;
  }

  #living(): Process[] {
    return this.#processes.filter(({ isAlive }) => isAlive);
  }

  #believers(): InstructedHandler[] {
    return [...this.#running].filter(({ process }) => process.isAlive);
  }

  #startProcess(): Process {
    const network = stallableStore(this.#store);
    const mortal = mortalStore(network.store);
    const { schedule, kill } = this.#time.process();
    const rules = new Map(
      Object.entries(fleetTools).map(([tool, onInterrupted]) => [
        tool,
        { onInterrupted, maxAttempts: 1_000 },
      ]),
    );
    const lifecycle: TaskLifecycle = new TaskLifecycle({
      store: mortal.store,
      leaseMs,
      retentionMs: null,
      sweepIntervalMs: null,
      waitPollMs: 10_000,
      now: () => this.#time.nowMs + process.skewMs,
      monotonicNow: () => this.#time.nowMs,
      schedule,
      random: () => 0,
      // That a store stands still is told; anything else is a fault.
      onError: (error) => {
        if (process.isAlive && (error as { code?: unknown }).code !== "store_unavailable")
          this.#reference.noteFault(`reported: ${String(error)}`);
      },
      runner: {
        tools: () => rules,
        start: (task) => lifecycle.run(task, (attempt) => this.#handle(process, attempt)),
      },
    });
    const process: Process = { lifecycle, mortal, network, killTimers: kill, skewMs: 0, isAlive: true };
    this.#graves.push(mortal.bury);
    void lifecycle.recover().catch(ignore);
    return process;
  }

  /** The handler of both tools: does what it is told, until its signal says why not, unless it is stubborn. */
  async #handle(process: Process, task: TaskAttempt): Promise<JsonObject> {
    const known = this.#reference.get(task.taskId);
    const queue: Instruction[] = this.#isFinal ? finalInstructions(known) : [];
    let wake = (): void => undefined;
    const running: InstructedHandler = {
      process,
      task,
      tell: (instruction) => {
        queue.push(instruction);
        wake();
      },
    };
    this.#reference.noteBegin(running, this.#running);
    this.#running.add(running);
    const stopped = stop(known.isStubborn && !this.#isFinal ? undefined : task.signal);
    try {
      for (;;) {
        const instruction = queue.shift();
        const told = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const next = instruction === undefined ? told : this.#obey(task, instruction);
        const result = await Promise.race([next, stopped]);
        if (result !== undefined) return result;
      }
    } finally {
      this.#running.delete(running);
    }
  }

  async #obey(task: TaskAttempt, instruction: Instruction): Promise<JsonObject | void> {
    switch (instruction.do) {
      case "progress":
        return void task.progress({ done: instruction.value, total: task.attempt });
      case "checkpoint":
        return void task.saveCheckpoint({ value: instruction.value, by: task.attempt });
      case "ask": {
        const asking = this.#ask(task, instruction.key);
        // In the end it waits for each answer; before, the work goes on while questions are open.
        if (this.#isFinal) return asking;
        return void asking.catch(ignore);
      }
      case "complete":
        return { by: task.attempt };
      case "reject":
        throw new Error("broken");
      case "fail":
        throw Object.assign(new Error("refused"), { code: -32_001 });
    }
  }

  async #ask(task: TaskAttempt, key: string): Promise<void> {
    this.#reference.get(task.taskId).keys.add(key);
    const answers = await task.requestInput({ [key]: question(key) });
    this.#reference.noteDelivered(task.taskId, key, answers[key]);
  }

  /** Until nothing is under way that needs no time of the clock: promises, and writes that met another. */
  async #settleAndCheck(): Promise<void> {
    const isBusy = (): boolean =>
      this.#living().some(
        ({ network, lifecycle }) => !network.isStalled() && lifecycle.stats.queuedWrites > 0,
      );
    let turns = 0;
    do await nextTurn();
    while ((turns += 1) < 3 || (isBusy() && turns < 10_000));
    if (isBusy()) throw new Error("Writes do not come to an end.");
    this.#reference.check(this.#believers());
  }
}

/** Rejects with the reason of a signal, when there is one. */
function stop(signal: AbortSignal | undefined): Promise<never> {
  const stopped = new Promise<never>((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason as Error));
  });
  stopped.catch(ignore);
  return stopped;
}

function finalInstructions({ keys }: KnownTask): Instruction[] {
  return [...Array.from(keys, (key): Instruction => ({ do: "ask", key })), { do: "complete" }];
}

function ignore(): void {}
