#!/usr/bin/env node
import { once } from "node:events";
import { realWorld } from "./lock-directory.ts";
import { nodeFiles } from "./node-file-layer.ts";
import { runCommand } from "./run-command.ts";

// Whoever reads the output may stop early, as `head` does: then there is nobody to tell.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

process.exitCode = await runCommand(process.argv.slice(2), {
  directory: process.cwd(),
  files: nodeFiles,
  world: realWorld(),
  print: async (text) => {
    if (!process.stdout.write(text)) await once(process.stdout, "drain");
  },
  printError: (text) => process.stderr.write(text),
  isTerminal: process.stderr.isTTY,
  nowMs: Date.now,
});
