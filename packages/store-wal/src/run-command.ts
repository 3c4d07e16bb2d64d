import { isLongJobsError } from "@longjobs/core";
import { resolve } from "node:path";
import { ClosedLog, NotALogError, type ClosedLogOptions } from "./closed-log.ts";
import { parseCommandLine, usage, UsageError, type CommandLine } from "./command-line.ts";
import { Examination } from "./examine-log.ts";
import { errnoOf, type FileLayer } from "./file-layer.ts";
import type { LockWorld } from "./lock-directory.ts";
import { conclude, reportLog, REPORT_FORMAT } from "./log-report.ts";
import { count, printConclusion, printLog, printTasks } from "./print-report.ts";
import { repairLog, TargetError } from "./repair-log.ts";
import { ShowProgress } from "./show-progress.ts";
import { reportOfTask, type TaskReport } from "./task-report.ts";
import { printable } from "./text-table.ts";

/** What the command needs of the process it runs in. */
export interface CommandHost {
  /** The directory that a relative path starts from. */
  readonly directory: string;
  readonly files: FileLayer;
  readonly world: LockWorld;
  /** Resolves when there is room for more: a document may be larger than the memory. */
  readonly print: (text: string) => Promise<void>;
  readonly printError: (text: string) => void;
  /** Whether errors go to a terminal, where a line can be written over. */
  readonly isTerminal: boolean;
  readonly nowMs: () => number;
}

/** The exit codes of the command, as `--help` has them. */
export const exitCodes = { healthy: 0, damaged: 1, usage: 2, impossible: 3 } as const;

/** Tasks in a table, unless asked for more. */
const TABLE_TASKS = 100;

/** The `longjobs-wal` command. Resolves to the exit code. */
export async function runCommand(args: readonly string[], host: CommandHost): Promise<number> {
  let line: CommandLine | "help";
  try {
    line = parseCommandLine(args);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    host.printError(`${error.message}\n\n${usage}\n`);
    return exitCodes.usage;
  }
  if (line === "help") {
    await host.print(`${usage}\n`);
    return exitCodes.healthy;
  }
  const progress = new ShowProgress({ ...host, monotonicMs: () => host.world.monotonicMs() });
  const run = new CommandRun(line, host, progress);
  try {
    return await run.execute();
  } catch (error) {
    progress.end();
    return await run.fail(error);
  } finally {
    progress.end();
  }
}

/** One run over one log. */
class CommandRun {
  readonly #line: CommandLine;
  readonly #host: CommandHost;
  readonly #progress: ShowProgress;
  readonly #options: ClosedLogOptions;
  #hasPrinted = false;

  constructor(line: CommandLine, host: CommandHost, progress: ShowProgress) {
    this.#line = line;
    this.#host = host;
    this.#progress = progress;
    this.#options = {
      dir: resolve(host.directory, line.dir),
      files: host.files,
      world: {
        ...host.world,
        wait: (ms) => {
          progress.wait(
            "its last owner cannot be looked at from here: waiting ten seconds for a sign of life",
          );
          return host.world.wait(ms);
        },
      },
      onProgress: (now) => progress.update(now),
    };
  }

  async execute(): Promise<number> {
    const log = await ClosedLog.open(this.#options);
    try {
      const examination = await this.#examine(log).catch(async (error: unknown) => {
        // What failed may be the work of a new owner: say that first.
        await log.assertUnowned();
        throw error;
      });
      return examination.damage.length === 0 ? exitCodes.healthy : exitCodes.damaged;
    } finally {
      await log.close();
    }
  }

  /** Says why nothing could be done; a program gets it as a document, unless it has part of one already. */
  async fail(error: unknown): Promise<number> {
    const { json, command } = this.#line;
    const told = tell(error);
    this.#host.printError(`${printable(told.message)}\n`);
    if (json && !this.#hasPrinted)
      await this.#host.print(`${JSON.stringify({ format: REPORT_FORMAT, command, error: told })}\n`);
    return exitCodes.impossible;
  }

  async #examine(log: ClosedLog): Promise<Examination> {
    const { command, to, json } = this.#line;
    if (command === "repair") return this.#repair(log, resolve(this.#host.directory, to ?? ""));
    const examination = await Examination.begin(log);
    if (command === "inspect") {
      await (json ? this.#inspectJson(log, examination) : this.#inspectTable(log, examination));
      return examination;
    }
    for await (const _ of examination.tasks(this.#options.onProgress)) void _;
    await log.assertUnowned();
    await this.#conclude(log, examination, {});
    return examination;
  }

  async #repair(log: ClosedLog, to: string): Promise<Examination> {
    const examination = await repairLog(log, to, this.#options);
    const { healthyTasks, damagedTasks } = examination;
    await this.#conclude(log, examination, { to, copiedTasks: healthyTasks });
    if (!this.#line.json) {
      const left = damagedTasks === 0 ? "" : `; ${count(damagedTasks, "damaged task")} left out`;
      await this.#print(`copied ${count(healthyTasks, "task")} to ${printable(to)}${left}\n`);
    }
    return examination;
  }

  async #conclude(log: ClosedLog, examination: Examination, more: object): Promise<void> {
    this.#progress.end();
    const report = reportLog(this.#line.command, log);
    const conclusion = conclude(log, examination);
    await this.#print(
      this.#line.json
        ? `${JSON.stringify({ ...report, ...more, ...conclusion }, undefined, 2)}\n`
        : lines([...printLog(report), ...printConclusion(conclusion)]),
    );
  }

  /** Written a task at a time: the records of a log may be larger than the memory, or than one string. */
  async #inspectJson(log: ClosedLog, examination: Examination): Promise<void> {
    const { limit = Infinity } = this.#line;
    let shown = 0;
    await this.#print(`${JSON.stringify(reportLog("inspect", log)).slice(0, -1)},"tasks":[`);
    for await (const task of this.#tasks(examination)) {
      if (shown >= limit) continue;
      await this.#print(`${shown === 0 ? "" : ","}\n${JSON.stringify(task)}`);
      shown += 1;
    }
    await log.assertUnowned();
    await this.#print(`\n],${JSON.stringify(conclude(log, examination)).slice(1)}\n`);
  }

  async #inspectTable(log: ClosedLog, examination: Examination): Promise<void> {
    const { limit = TABLE_TASKS } = this.#line;
    const tasks: TaskReport[] = [];
    let left = 0;
    for await (const task of this.#tasks(examination)) {
      if (tasks.length < limit) tasks.push(task);
      else left += 1;
    }
    await log.assertUnowned();
    this.#progress.end();
    const conclusion = printConclusion(conclude(log, examination));
    await this.#print(
      lines([...printLog(reportLog("inspect", log)), ...printTasks(tasks, left), ...conclusion]),
    );
  }

  /** All tasks are read, so that the conclusion is about all of them; those asked for are reported. */
  async *#tasks(examination: Examination): AsyncGenerator<TaskReport> {
    const { tasks, payloads } = this.#line;
    const options = { nowMs: this.#host.nowMs(), withPayloads: payloads };
    for await (const examined of examination.tasks(this.#options.onProgress)) {
      if (tasks === undefined || tasks.includes(examined.taskId)) yield reportOfTask(examined, options);
    }
  }

  async #print(text: string): Promise<void> {
    this.#hasPrinted = true;
    await this.#host.print(text);
  }
}

function lines(all: readonly string[]): string {
  return `${all.join("\n")}\n`;
}

interface ToldError {
  readonly code: string;
  readonly message: string;
  /** Typed facts: of a locked directory `dir`, and `pid`, `host` and `since` of its holder. */
  readonly partial?: unknown;
}

function tell(error: unknown): ToldError {
  if (error instanceof NotALogError) return { code: "not_a_log", message: error.message };
  if (error instanceof TargetError) return { code: "bad_target", message: error.message };
  if (!isLongJobsError(error)) return { code: errnoOf(error) ?? "failed", message: String(error) };
  const { code, partial, cause } = error;
  const reason = cause instanceof Error ? ` (${cause.message})` : "";
  return { code, message: `${error.message}${reason}`, ...(partial === undefined ? {} : { partial }) };
}
