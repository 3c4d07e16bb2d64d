#!/usr/bin/env node
import { runCommand } from "./run-command.ts";

/** The part of `process` that Node, Deno and Bun share. */
interface HostProcess {
  readonly argv: readonly string[];
  readonly stdout: { write(text: string): unknown };
  readonly stderr: { write(text: string): unknown };
  exitCode?: number;
  cwd(): string;
}

const { process } = globalThis as unknown as { process: HostProcess };

process.exitCode = await runCommand(process.argv.slice(2), {
  directory: process.cwd(),
  print: (text) => process.stdout.write(`${text}\n`),
  printError: (text) => process.stderr.write(`${text}\n`),
});
