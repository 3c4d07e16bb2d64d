/*
 * Runs every tasks scenario of the official MCP conformance suite against the example server, with each store.
 * Exits non-zero unless every check passes; the last line says the counts.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const scenarios = [
  "tasks-lifecycle",
  "tasks-capability-negotiation",
  "tasks-wire-fields",
  "tasks-request-state-removal",
  "tasks-mrtr-input",
  "tasks-request-headers",
  "tasks-dispatch-and-envelope",
  "tasks-required-task-error",
  "tasks-mrtr-composition",
];
/** What the suite's version in package.json has; fewer would mean that a scenario did not run to its end. */
const checksPerStore = 44;
const scenarioDeadlineMs = 120_000;

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const suite = join(
  dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/conformance/package.json")),
  "dist/index.js",
);

let passed = 0;
let failed = 0;
for (const store of ["memory", "wal"]) {
  const { server, url } = await startServer(store);
  let passedHere = 0;
  try {
    for (const scenario of scenarios) {
      const counts = await runScenario(url, scenario);
      console.log(`${store} ${scenario}: ${counts.passed} passed, ${counts.failed} failed`);
      passedHere += counts.passed;
      failed += counts.failed;
    }
  } finally {
    server.kill("SIGTERM");
  }
  passed += passedHere;
  if (passedHere < checksPerStore) {
    failed += checksPerStore - passedHere;
    console.log(`${store}: ${passedHere} of ${checksPerStore} checks passed`);
  }
}
if (failed > 0) process.exitCode = 1;
console.log(`official conformance: ${passed} passed, ${failed} failed`);

async function startServer(store: string): Promise<{ server: ChildProcess; url: string }> {
  const server = spawn(process.execPath, [join(root, "examples/conformance-server/src/server.ts")], {
    env: { ...process.env, PORT: "0", STORE: store },
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: server.stdout })) {
    if (line.startsWith("http://")) return { server, url: line };
  }
  throw new Error(`The example server with the ${store} store ended before it was listening.`);
}

async function runScenario(url: string, scenario: string): Promise<{ passed: number; failed: number }> {
  const run = spawn(process.execPath, [suite, "server", "--url", url, "--scenario", scenario], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: scenarioDeadlineMs,
  });
  let output = "";
  run.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  run.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const exitCode = await new Promise<number | null>((resolve) => run.once("close", resolve));
  const counts = /Passed: (\d+)\/(\d+), (\d+) failed/.exec(output);
  const result =
    counts === null ? { passed: 0, failed: 1 } : { passed: Number(counts[1]), failed: Number(counts[3]) };
  if (exitCode !== 0 || result.failed > 0) console.log(output);
  return exitCode === 0 ? result : { ...result, failed: Math.max(1, result.failed) };
}
