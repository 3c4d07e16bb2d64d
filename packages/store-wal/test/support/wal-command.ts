import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { realWorld } from "../../src/lock-directory.ts";
import { nodeFiles } from "../../src/node-file-layer.ts";
import { runCommand, type CommandHost } from "../../src/run-command.ts";

export interface CommandOutcome {
  readonly code: number;
  readonly printed: string;
  readonly errors: string;
}

/** Runs `longjobs-wal` in this process. */
export async function runWal(
  args: readonly string[],
  host: Partial<CommandHost> = {},
): Promise<CommandOutcome> {
  const output = { printed: "", errors: "" };
  const code = await runCommand(args, {
    directory: "/",
    files: nodeFiles,
    world: realWorld(),
    print: (text) => {
      output.printed += text;
      return Promise.resolve();
    },
    printError: (text) => (output.errors += text),
    isTerminal: false,
    nowMs: () => Date.parse("2026-06-01T00:00:00.000Z"),
    ...host,
  });
  return { code, ...output };
}

/** The document that `--json` prints. */
export async function walJson<Document>(
  args: readonly string[],
  host?: Partial<CommandHost>,
): Promise<Document & { readonly code: number }> {
  const { code, printed } = await runWal([...args, "--json"], host);
  return { ...(JSON.parse(printed) as Document), code };
}

/** Everything in a directory: names, bytes and the moment of the last change. */
export function photograph(dir: string): Record<string, string> {
  const seen: Record<string, string> = {};
  for (const name of readdirSync(dir, { recursive: true, encoding: "utf8" })) {
    const path = join(dir, name);
    const { mtimeMs, ctimeMs } = statSync(path);
    const bytes = statSync(path).isDirectory() ? "" : readFileSync(path, "base64");
    seen[name] = `${mtimeMs} ${ctimeMs} ${bytes}`;
  }
  seen["."] = `${statSync(dir).mtimeMs}`;
  return seen;
}
