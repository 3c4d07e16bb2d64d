import { isRefusal } from "./attempt.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import type { Outcome } from "./outcome.ts";
import { interruptedError, maxAttemptsError, orphanPatch } from "./orphan.ts";
import { crashesOf, type TakenTask, type TakeOver } from "./take-over.ts";
import { dispatchOwner, type RecoveryRules, type TaskRunner } from "./task-runner.ts";
import { isTerminal, type TaskError, type TaskRecord } from "./task-record.ts";
import type { TaskWriter } from "./task-writer.ts";

/** Tasks that are only ended take no slot; this many at a time keep a claim short. */
const claimBatch = 100;
/** Rounds of one recovery: the rest of a long backlog waits for the next. */
const maxRounds = 100;

/** What a recovery works with. */
export interface RecoveryContext {
  readonly options: ResolvedLifecycleOptions;
  readonly writer: TaskWriter;
  readonly takeOver: TakeOver;
  /** How many more handlers may begin here now. */
  readonly freeSlots: () => number;
  /** True when this engine begins no work any more. */
  readonly isClosing: () => boolean;
}

/**
 * Goes on with tasks whose process is gone: cancelled ones end as cancelled, those of a tool that may run again are run,
 * all others end as interrupted. Tools that are not registered here are left to other instances.
 */
export class Recovery {
  readonly #context: RecoveryContext;
  #running: Promise<number> | undefined;

  constructor(context: RecoveryContext) {
    this.#context = context;
  }

  /** Takes over what nobody holds, and resolves to how many tasks that were. Calls at the same time are one. */
  recover(): Promise<number> {
    this.#running ??= this.#recover().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /**
   * Goes on with one task that this engine has taken: ends it, or has it run again, here or elsewhere. A task that was taken
   * away meanwhile, or has ended, is let go.
   */
  async goOn(taken: TakenTask): Promise<void> {
    const { runner } = this.#context.options;
    try {
      if (await this.#endIfItMust(taken)) return;
      if (runner?.dispatch !== undefined) await this.#dispatch(taken, runner);
      else void runner?.start(await this.#context.takeOver.begin(taken), taken.record);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }

  /** Runs a task that this engine has taken, here and to its end, unless it must not run again. */
  async runHere(taken: TakenTask, runner: TaskRunner): Promise<Outcome | undefined> {
    if (await this.#endIfItMust(taken)) return undefined;
    return runner.start(await this.#context.takeOver.begin(taken), taken.record);
  }

  /** Ends a task that this engine has taken: as cancelled if that was wished, else with the error. */
  async end({ record, token }: TakenTask, error: TaskError = interruptedError(record)): Promise<TaskRecord> {
    const { writer, options } = this.#context;
    return writer.write(record.taskId, (found) =>
      isTerminal(found.status) || found.lease?.token !== token
        ? undefined
        : orphanPatch(found, { token, nowMs: options.now(), error }),
    );
  }

  async #endIfItMust(taken: TakenTask): Promise<boolean> {
    const { record } = taken;
    const rules = this.#context.options.runner?.tools().get(record.work?.tool ?? "");
    const ending = endingOf(record, rules);
    if (ending !== undefined) await this.end(taken, ending);
    return ending !== undefined;
  }

  /** Holds the task for a worker elsewhere, and has the run delivered to it. */
  async #dispatch({ record, token }: TakenTask, runner: TaskRunner): Promise<void> {
    const { writer, options } = this.#context;
    const lease = { owner: dispatchOwner, token: options.randomId(), durationMs: options.dispatchMs };
    const held = await writer.write(record.taskId, (found) =>
      isTerminal(found.status) || found.lease?.token !== token
        ? undefined
        : { lease, released: true, crashes: crashesOf(found) },
    );
    if (held.lease?.token !== lease.token) return;
    await runner.dispatch?.({ taskId: held.taskId, tool: held.work?.tool ?? "", attempt: held.attempt + 1 });
  }

  async #recover(): Promise<number> {
    const { runner } = this.#context.options;
    if (runner === undefined) return 0;
    const elsewhere = runner.dispatch !== undefined;
    const ended = await this.#claimAll(toolsWith(runner, "fail"), () => claimBatch);
    const resumed = await this.#claimAll(toolsWith(runner, "resume"), () =>
      elsewhere ? claimBatch : Math.min(claimBatch, this.#context.freeSlots()),
    );
    return ended + resumed;
  }

  async #claimAll(tools: readonly string[], limitNow: () => number): Promise<number> {
    let taken = 0;
    for (let round = 0; round < maxRounds && tools.length > 0; round += 1) {
      const limit = limitNow();
      if (limit < 1 || this.#context.isClosing()) break;
      const claimed = await this.#context.takeOver.claim({ limit, tools });
      taken += claimed.length;
      const results = await Promise.allSettled(claimed.map((task) => this.goOn(task)));
      for (const result of results)
        if (result.status === "rejected") this.#context.options.reportError(result.reason);
      if (claimed.length < limit) break;
    }
    return taken;
  }
}

/** Why the task is not run again, or `undefined` when it is. A task that no run has begun of was never interrupted. */
function endingOf(record: TaskRecord, rules: RecoveryRules | undefined): TaskError | undefined {
  if (record.cancelRequestedAt !== undefined || rules === undefined) return interruptedError(record);
  if (record.attempt === 0) return undefined;
  if (rules.onInterrupted === "fail") return interruptedError(record);
  const crashes = crashesOf(record);
  return crashes >= rules.maxAttempts ? maxAttemptsError(record, crashes) : undefined;
}

function toolsWith(runner: TaskRunner, onInterrupted: RecoveryRules["onInterrupted"]): string[] {
  return [...runner.tools()].flatMap(([tool, rules]) =>
    rules.onInterrupted === onInterrupted ? [tool] : [],
  );
}
