import { expect } from "vitest";

import {
  isTerminal,
  type InputResponse,
  type MemoryTaskStore,
  type TaskAttempt,
  type TaskRecord,
} from "../../src/index.ts";

/** The tools of a fleet, which every process of it can run, and how each goes on after an interruption. */
export const fleetTools = { crawl: "resume", pay: "fail" } as const;

/** What is known of a task from outside: what was promised to its clients, and what it has been through. */
export interface KnownTask {
  readonly taskId: string;
  readonly tool: keyof typeof fleetTools;
  /** Its handlers go on whatever their signals say. */
  readonly isStubborn: boolean;
  /** What its handlers have asked. */
  readonly keys: Set<string>;
  /** The answers that a client was told were taken. */
  readonly acknowledged: Map<string, InputResponse>;
  /** The attempts whose handler has begun. */
  readonly begun: Set<number>;
  /** The states that the store has had, one for each version; none while the create has not arrived. */
  readonly states: TaskRecord[];
}

/** A handler that has not come to its end. */
export interface RunningHandler {
  /** Which process it runs in. */
  readonly process: object;
  readonly task: TaskAttempt;
}

/**
 * What a fleet is compared with: that each task has one outcome, by whoever held it; that attempts only grow, each begins once,
 * and no two take a task for their own; that no answer is lost which was acknowledged; and that nothing begins which was
 * cancelled, or must not run again.
 */
export class FleetReference {
  readonly tasks: KnownTask[] = [];
  readonly #faults: string[] = [];

  get(taskId: string): KnownTask {
    const known = this.tasks.find((task) => task.taskId === taskId);
    if (known === undefined) throw new Error(`Nobody created ${taskId}.`);
    return known;
  }

  add(task: Pick<KnownTask, "taskId" | "tool" | "isStubborn">): void {
    this.tasks.push({ ...task, keys: new Set(), acknowledged: new Map(), begun: new Set(), states: [] });
  }

  get isOver(): boolean {
    return this.tasks.every(({ states }) => states.length === 0 || isTerminal(latest(states).status));
  }

  /** Hears of every change in the store, at the moment it happens. */
  watch(store: MemoryTaskStore): void {
    const create = store.create.bind(store);
    const update = store.update.bind(store);
    const claim = store.claim.bind(store);
    store.create = async (record) => {
      await create(record);
      this.#note(record);
    };
    store.update = async (taskId, patch, expectedVersion) => {
      const version = await update(taskId, patch, expectedVersion);
      const record = await store.get(taskId);
      if (record !== undefined) this.#note(record);
      return version;
    };
    store.claim = async (...call) => {
      const claimed = await claim(...call);
      for (const record of claimed) this.#note(record);
      return claimed;
    };
  }

  noteFault(fault: string): void {
    this.#faults.push(fault);
  }

  noteBegin({ process, task }: RunningHandler, running: Iterable<RunningHandler>): void {
    const { taskId, attempt } = task;
    const { begun, states, tool } = this.get(taskId);
    const name = `attempt ${attempt} of ${taskId}`;
    if (begun.has(attempt)) this.noteFault(`${name} began twice`);
    begun.add(attempt);
    if (fleetTools[tool] === "fail" && attempt > 1) this.noteFault(`${name} ran, which must not run again`);
    if (states.find((record) => record.attempt === attempt)?.cancelRequestedAt !== undefined)
      this.noteFault(`${name} began after its task was cancelled`);
    for (const other of running)
      if (other.process === process && other.task.taskId === taskId)
        this.noteFault(`${name} began beside attempt ${other.task.attempt} of the same process`);
  }

  noteAcknowledged(taskId: string, key: string, answer: InputResponse): void {
    this.get(taskId).acknowledged.set(key, answer);
  }

  noteDelivered(taskId: string, key: string, answer: InputResponse | undefined): void {
    const promised = this.get(taskId).acknowledged.get(key);
    if (promised !== undefined && !equal(promised, answer))
      this.noteFault(`${taskId} got another answer to ${key} than was acknowledged`);
  }

  noteCancelled(taskId: string): void {
    const { status, cancelRequestedAt } = latest(this.get(taskId).states);
    if (cancelRequestedAt === undefined && !isTerminal(status))
      this.noteFault(`${taskId} was not cancelled, as was acknowledged`);
  }

  /** Checks a moment in which nothing is under way. */
  check(running: readonly RunningHandler[]): void {
    for (const { taskId, acknowledged, states } of this.tasks) {
      const believers = running.filter(({ task }) => task.taskId === taskId && !task.signal.aborted);
      const attempts = believers.map(({ task }) => task.attempt).join(" and ");
      if (believers.length > 1) this.noteFault(`${taskId} has the handlers of attempts ${attempts} at once`);
      if (states.length === 0 || isTerminal(latest(states).status)) continue;
      for (const [key, answer] of acknowledged)
        if (!equal(latest(states).inputs?.[key]?.answer, answer))
          this.noteFault(`${taskId} does not have the answer to ${key} that was acknowledged`);
    }
    expect(this.#faults).toEqual([]);
  }

  /** Checks that every task that was accepted came to an end that it may come to. */
  checkEnds(): void {
    for (const { taskId, tool, states } of this.tasks) {
      if (states.length === 0) continue;
      const { status, error, attempt, cancelRequestedAt } = latest(states);
      const { reason } = (error?.data ?? {}) as { readonly reason?: string };
      const ended = `${taskId} (${tool}) ended ${status} ${reason ?? ""} after ${attempt} attempts`;
      expect(isTerminal(status), ended).toBe(true);
      const isCancelled = cancelRequestedAt !== undefined;
      if (fleetTools[tool] === "resume" || isCancelled) expect(reason, ended).toBeUndefined();
      if (status === "cancelled") expect(isCancelled, ended).toBe(true);
    }
  }

  #note(record: TaskRecord): void {
    const { states } = this.get(record.taskId);
    const before = states.at(-1);
    if (before !== undefined) for (const fault of faultsOf(before, record)) this.noteFault(fault);
    states.push(record);
  }
}

/** What must not happen from one state of a record to the next. */
function faultsOf(before: TaskRecord, after: TaskRecord): string[] {
  const { taskId } = after;
  const rules: readonly (readonly [boolean, string])[] = [
    [isTerminal(before.status), "was changed after its end"],
    [![before.attempt, before.attempt + 1].includes(after.attempt), `jumped to attempt ${after.attempt}`],
    [after.crashes < before.crashes, "has fewer crashes than before"],
    [after.crashes > after.attempt, "has more crashes than attempts"],
    [
      before.cancelRequestedAt !== undefined && after.cancelRequestedAt === undefined,
      "is not cancelled any more",
    ],
    [
      !equal(before.checkpoint, after.checkpoint) &&
        !isTerminal(after.status) &&
        writerOf(after.checkpoint?.value) !== before.attempt,
      `has a checkpoint that attempt ${before.attempt} did not write`,
    ],
    [
      !equal(before.progress, after.progress) && after.progress?.total !== before.attempt,
      `has progress that attempt ${before.attempt} did not write`,
    ],
    [
      isTerminal(after.status) && after.finishedBy !== before.lease?.token,
      "was ended by somebody who did not hold it",
    ],
    [
      !isTerminal(after.status) &&
        Object.entries(before.inputs ?? {}).some(
          ([key, { answer }]) => answer !== undefined && !equal(after.inputs?.[key]?.answer, answer),
        ),
      "has lost an answer",
    ],
  ];
  return rules.flatMap(([isBroken, fault]) => (isBroken ? [`${taskId} ${fault}`] : []));
}

function writerOf(checkpoint: unknown): number | undefined {
  return (checkpoint as { readonly by?: number } | undefined)?.by;
}

function equal(left: unknown, right: unknown): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

function latest(states: readonly TaskRecord[]): TaskRecord {
  return states.at(-1) as TaskRecord;
}
