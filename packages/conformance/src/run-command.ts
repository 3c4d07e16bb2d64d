import { checkTaskStore } from "./check-task-store.ts";
import { describeError } from "./expect.ts";
import type { StoreFactory } from "./store-under-test.ts";
import type { SuiteOptions } from "./suite-options.ts";

/** What the command needs of the process it runs in. */
export interface CommandHost {
  /** The directory that a relative path starts from. */
  readonly directory: string;
  readonly print: (text: string) => void;
  readonly printError: (text: string) => void;
}

/** What a module under test exports. */
interface StoreModule {
  readonly factory: StoreFactory;
  readonly name?: string;
  readonly options?: SuiteOptions;
}

const usage = `Usage: longjobs-conformance MODULE [--json]

MODULE exports \`factory\`, and may export \`name\` and \`options\` ({ profile, skips, checkDeadlineMs }).
Exit code 0: every check that applies passed; 1: a check failed; 2: the command was not understood.`;

/** The command line of the suite. Resolves to the exit code. */
export async function runCommand(args: readonly string[], host: CommandHost): Promise<number> {
  const [path, ...others] = args.filter((argument) => argument !== "--json");
  if (path === undefined || path.startsWith("-") || others.length > 0) {
    host.printError(usage);
    return 2;
  }
  try {
    const { factory, name = path, options } = await importStore(path, host.directory);
    const report = await checkTaskStore(name, factory, options);
    host.print(args.includes("--json") ? JSON.stringify(report, undefined, 2) : report.toTable());
    return report.ok ? 0 : 1;
  } catch (error) {
    host.printError(`${path}: ${describeError(error)}`);
    return 2;
  }
}

async function importStore(path: string, directory: string): Promise<StoreModule> {
  const module = (await import(new URL(path, directoryUrl(directory)).href)) as Partial<StoreModule>;
  if (typeof module.factory !== "function")
    throw new TypeError("The module must export a function `factory`.");
  return module as StoreModule;
}

/** A file URL by hand: `node:url` is not there in every runtime. */
function directoryUrl(directory: string): string {
  const path = directory.replaceAll("\\", "/").replace(/^(?!\/)/, "/");
  return `file://${encodeURI(path).replaceAll("#", "%23").replaceAll("?", "%3F")}/`;
}
