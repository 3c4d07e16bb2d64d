import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

import { textOf, type ToolCaller, type ToolReply } from "./by-tools.ts";
import type { Job, ScenarioClient } from "./scenario.ts";

const { resolve } = createRequire(import.meta.url);
const program = join(
  dirname(resolve("@modelcontextprotocol/inspector/package.json")),
  "clients/launcher/build/index.js",
);

/** Runs one method of `mcp-inspector --cli`, and gives its result. Every run is a session of its own. */
function runInspector(
  url: string,
  era: "legacy" | "modern",
  method: string,
  more: readonly string[] = [],
): Promise<unknown> {
  const options = ["--transport", "http", "--protocol-era", era, "--format", "json", "--quiet"];
  const args = [program, "--cli", url, ...options, "--method", method, ...more];
  return new Promise((done, fail) => {
    execFile(process.execPath, args, { timeout: 30_000 }, (error, stdout, stderr) => {
      // It exits with 5 for a tool's own error, whose result is there all the same.
      const { result } = JSON.parse(stdout === "" ? "{}" : stdout) as { readonly result?: unknown };
      if (result === undefined) fail(new Error(`${method}: ${stderr}`, { cause: error }));
      else done(result);
    });
  });
}

/** The inspector as a client that knows nothing but tools. */
export function inspectorCaller(url: string, era: "legacy" | "modern"): ToolCaller {
  return {
    showsProgress: false,
    listTools: async () => {
      const { tools } = (await runInspector(url, era, "tools/list")) as {
        readonly tools: readonly { readonly name: string }[];
      };
      return tools.map(({ name }) => name);
    },
    readResource: async (uri) => {
      const { contents } = (await runInspector(url, era, "resources/read", ["--uri", uri])) as {
        readonly contents: readonly { readonly text: string }[];
      };
      return contents[0]?.text ?? "";
    },
    callTool: async (name, args) =>
      (await runInspector(url, era, "tools/call", [
        "--tool-name",
        name,
        "--tool-args-json",
        JSON.stringify(args),
      ])) as ToolReply,
    close: async () => undefined,
  };
}

/**
 * The inspector as a client of 2026-07-28: it declares tasks, and follows them itself until its one call is answered. It
 * declares no elicitation, and shows no task on the way.
 *
 * @param nextTask - Resolves when the server makes a task.
 */
export function inspectorByTasks(url: string, nextTask: () => Promise<void>): ScenarioClient {
  const caller = inspectorCaller(url, "modern");
  return {
    listTools: () => caller.listTools(),
    readResource: (uri) => caller.readResource(uri),
    close: () => caller.close(),
    call: async (name, args) => textOf(await caller.callTool(name, args)),
    start: async (name, args): Promise<Job> => {
      const reply = caller.callTool(name, args);
      const way = await Promise.race([nextTask().then(() => "task" as const), reply.then(() => undefined)]);
      return {
        way,
        reference: undefined,
        settle: async () => ({ text: textOf(await reply), asked: [] }),
      };
    },
  };
}
