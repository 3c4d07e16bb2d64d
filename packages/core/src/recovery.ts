import { isRefusal, type Attempt } from "./attempt.ts";
import { lifecycleErrors } from "./lifecycle-errors.ts";
import type { ResolvedLifecycleOptions } from "./lifecycle-options.ts";
import type { Outcome } from "./outcome.ts";
import { isLongJobsError } from "./longjobs-error.ts";
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

  constructor(context: RecoveryContext) {
    this.#context = context;
  }

  /** Takes over what nobody holds, and resolves to how many tasks that were. */
  async recover(): Promise<number> {
    const { runner } = this.#context.options;
    if (runner === undefined) return 0;
    const elsewhere = runner.dispatch !== undefined;
    // With no tool either: a cancelled task is ended by anyone, and needs no place to run.
    const ended = await this.#claimAll(toolsWith(runner, "fail"), () => claimBatch);
    const resume = toolsWith(runner, "resume");
    const resumed = await this.#claimAll(resume, () => {
      if (resume.length === 0) return 0;
      return elsewhere ? claimBatch : Math.min(claimBatch, this.#context.freeSlots());
    });
    return ended + resumed;
  }

  /**
   * Goes on with one task that this engine has taken: ends it, or has it run again, here or elsewhere. A task that was taken
   * away meanwhile, or has ended, is let go.
   */
  async goOn(taken: TakenTask): Promise<void> {
    const { runner } = this.#context.options;
    try {
      if (await this.#endIfItMust(taken)) return;
      if (runner === undefined) return;
      if (runner.dispatch !== undefined) return await this.#dispatch(taken);
      const attempt = await this.#context.takeOver.begin(taken);
      if (attempt !== undefined) void this.#run(attempt, taken.record, runner);
    } catch (error) {
      if (!isRefusal(error)) throw error;
    }
  }

  /** Runs a task that this engine has taken, here and to its end, unless it must not run again. */
  async runHere(taken: TakenTask, runner: TaskRunner): Promise<Outcome | undefined> {
    if (await this.#endIfItMust(taken)) return undefined;
    const attempt = await this.#context.takeOver.begin(taken);
    if (attempt !== undefined) return this.#run(attempt, taken.record, runner);
    return { status: "abandoned", reason: lifecycleErrors.shutdown(taken.record.taskId) };
  }

  /** Ends a task that this engine has taken: as cancelled if that was wished, else with the error. */
  async end({ record, token }: TakenTask, error: TaskError = interruptedError(record)): Promise<TaskRecord> {
    const { writer, options } = this.#context;
    return writer.write(record.taskId, (found) =>
      isTerminal(found.status) || found.lease?.token !== token
        ? undefined
        : {
            ...orphanPatch(found, { token, nowMs: options.now(), error }),
            crashes: crashesOf(found, options),
          },
    );
  }

  /** A runner that cannot run a task after all gives it back: a lease that is kept alive for nobody would never end. */
  async #run(attempt: Attempt, record: TaskRecord, runner: TaskRunner): Promise<Outcome> {
    const { reportError } = this.#context.options;
    let outcome: Outcome;
    try {
      outcome = await runner.start(attempt, record);
    } catch (error) {
      if (!isRefusal(error) && !isLongJobsError(error, "shutdown")) reportError(error);
      outcome = { status: "abandoned", reason: error };
    }
    if (outcome.status === "abandoned") await attempt.release().catch(reportError);
    return outcome;
  }

  async #endIfItMust(taken: TakenTask): Promise<boolean> {
    const { record } = taken;
    const rules = this.#context.options.runner?.tools().get(record.work?.tool ?? "");
    const ending = endingOf(record, rules, this.#context.options);
    if (ending !== undefined) await this.end(taken, ending);
    return ending !== undefined;
  }

  /**
   * Has the next run of a task delivered to a worker elsewhere. Never rejects: what is not delivered now is delivered again
   * when the lease that waits for the worker has lapsed.
   */
  async deliver({ taskId, work, attempt }: TaskRecord): Promise<void> {
    const { runner, reportError } = this.#context.options;
    try {
      await runner?.dispatch?.({ taskId, tool: work?.tool ?? "", attempt: attempt + 1 });
    } catch (error) {
      reportError(error);
    }
  }

  /** Holds the task for a worker elsewhere, and has the run delivered to it. */
  async #dispatch({ record, token }: TakenTask): Promise<void> {
    const { writer, options } = this.#context;
    const lease = { owner: dispatchOwner, token: options.randomId(), durationMs: options.dispatchMs };
    const held = await writer.write(record.taskId, (found) =>
      isTerminal(found.status) || found.lease?.token !== token
        ? undefined
        : { lease, released: true, crashes: crashesOf(found, options) },
    );
    // One that hangs must not hold up the recovery of the others.
    if (held.lease?.token === lease.token)
      await options.timers.within(this.deliver(held), options.leaseMs / 3);
  }

  async #claimAll(tools: readonly string[], limitNow: () => number): Promise<number> {
    let taken = 0;
    for (let round = 0; round < maxRounds; round += 1) {
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
function endingOf(
  record: TaskRecord,
  rules: RecoveryRules | undefined,
  options: ResolvedLifecycleOptions,
): TaskError | undefined {
  if (record.cancelRequestedAt !== undefined || rules === undefined) return interruptedError(record);
  if (record.attempt === 0) return undefined;
  if (rules.onInterrupted === "fail") return interruptedError(record);
  const crashes = crashesOf(record, options);
  return crashes >= rules.maxAttempts ? maxAttemptsError(record, crashes) : undefined;
}

function toolsWith(runner: TaskRunner, onInterrupted: RecoveryRules["onInterrupted"]): string[] {
  return [...runner.tools()].flatMap(([tool, rules]) =>
    rules.onInterrupted === onInterrupted ? [tool] : [],
  );
}
