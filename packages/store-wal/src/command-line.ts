import { parseArgs } from "node:util";

export const usage = `Usage: longjobs-wal COMMAND DIR [options]

Looks at a log of @longjobs/store-wal that no process has open: closed, left behind by a crash, or a copy.

  inspect DIR             lists its files and tasks, and what is damaged
  verify DIR              reads everything, and says what is damaged
  repair DIR --to DIR2    writes every healthy task into a new log, DIR2, which must not exist

None of the commands changes DIR.

  --payloads     inspect: show the records too; without it, names and sizes of their fields only
  --task ID      inspect: only this task; may be repeated
  --limit N      inspect: at most N tasks (100 in a table, all with --json)
  --json         print one JSON document for programs
  --help         print this

Exit code 0: healthy; 1: damage was found, and for repair left out; 2: the command was not understood;
3: it could not be done: a process has the log open, it is not a log, it cannot be read, DIR2 exists or
cannot be written.`;

/** A command as it was asked for. */
export interface CommandLine {
  readonly command: "inspect" | "verify" | "repair";
  readonly dir: string;
  readonly to: string | undefined;
  readonly payloads: boolean;
  readonly tasks: readonly string[] | undefined;
  readonly limit: number | undefined;
  readonly json: boolean;
}

/** Why a command was not understood. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const options = {
  to: { type: "string" },
  payloads: { type: "boolean" },
  task: { type: "string", multiple: true },
  limit: { type: "string" },
  json: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

/** What the arguments ask for. @throws UsageError */
export function parseCommandLine(args: readonly string[]): CommandLine | "help" {
  const { values, positionals } = parse(args);
  if (values.help === true) return "help";
  const [command, dir, ...others] = positionals;
  if (command !== "inspect" && command !== "verify" && command !== "repair")
    throw new UsageError(command === undefined ? "A command is missing." : `There is no command ${command}.`);
  if (dir === undefined || dir === "") throw new UsageError("The directory of the log is missing.");
  if (others.length > 0) throw new UsageError(`${others[0]} is one argument too many.`);
  const isInspect = command === "inspect";
  if (!isInspect && (values.payloads ?? values.task ?? values.limit) !== undefined)
    throw new UsageError("--payloads, --task and --limit go with inspect.");
  if ((command === "repair") !== (values.to !== undefined && values.to !== ""))
    throw new UsageError(command === "repair" ? "repair needs --to DIR2." : "--to goes with repair.");
  const { to, payloads = false, task: tasks, json = false } = values;
  return { command, dir, to, payloads, tasks, limit: parseLimit(values.limit), json };
}

function parse(
  args: readonly string[],
): ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>> {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error });
  }
}

function parseLimit(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new UsageError("--limit takes a whole number.");
  return Number(text);
}
