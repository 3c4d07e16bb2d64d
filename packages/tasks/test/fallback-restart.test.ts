import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { legacyFrame, modernFrame } from "./support/frames.ts";
import { parseFrames, routingHeaders } from "./support/http-door.ts";
import { ServerProcess } from "./support/server-process.ts";
import { assertLegacyWire, assertWire, type WireResult } from "./support/wire.ts";

let dir = "";
let server: ServerProcess | undefined;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "longjobs-restart-"));
});

afterEach(async () => {
  await server?.kill();
  await rm(dir, { recursive: true });
});

/** Kills the server as it stands, and starts another one on its log and port. */
async function restart(): Promise<void> {
  const port = server?.port;
  await server?.kill();
  server = await ServerProcess.start(dir, port);
}

type Call = (name: string, args?: object) => Promise<WireResult>;

/** Calls a tool as a client without tasks, each time on a connection and in a session of its own. */
function callerOf(era: "2026" | "2025"): Call {
  return async (name, args = {}) => {
    const params = { name, arguments: args };
    const modern = era === "2026";
    const response = await fetch(server?.url ?? "", {
      method: "POST",
      headers: modern
        ? routingHeaders("tools/call", params)
        : {
            "content-type": "application/json",
            accept: "application/json, text/event-stream",
            "mcp-protocol-version": "2025-11-25",
          },
      body: JSON.stringify(
        modern ? modernFrame("tools/call", params, { declare: false }) : legacyFrame("tools/call", params),
      ),
    });
    const frames = parseFrames(await response.text(), response.headers.get("content-type") ?? "");
    const message = frames.find(({ method }) => method === undefined);
    if (message?.result === undefined) throw new Error(`No result: ${JSON.stringify(message)}`);
    if (modern) assertWire("tools/call", message);
    else assertLegacyWire("tools/call", message);
    return message.result;
  };
}

function idOf(result: WireResult): string {
  return String(result.structuredContent?.["taskId"]);
}

// CASES part 2, tasks: "zombie: restart -> `working` for 24 h though the work died"; "acked `_respond`, then crash -> lost".
describe("a server that is killed between start, question and answer", () => {
  test.for(["2026", "2025"] as const)(
    "%s: the question is still there, its answer is kept, and the work goes on to its result",
    { timeout: 60_000 },
    async (era) => {
      server = await ServerProcess.start(dir);
      const call = callerOf(era);
      const started = await call("greet", { greeting: "Hello" });
      const taskId = idOf(started);
      await server.until(taskId, "input_required");
      await restart();

      const asked = await call("durable_task_get", { taskId, waitSeconds: 20 });
      expect(asked.isError).toBeUndefined();
      expect(asked.structuredContent).toMatchObject({
        status: "input_required",
        questions: [{ key: "who", prompt: "Who?" }],
      });
      await restart();

      // The answer is acknowledged; whatever dies after that, it is not asked for again.
      const answered = await call("durable_task_respond", { taskId, response: "Ada" });
      expect(answered.isError).toBeUndefined();
      expect(answered.content?.[0]?.text).toMatch(/^The answer was taken\./);
      await restart();

      const result = await call("durable_task_get", { taskId, waitSeconds: 25 });
      expect(result).toMatchObject({ content: [{ type: "text", text: "Hello, Ada!" }] });
      expect(result.isError).toBeUndefined();
    },
  );

  test(
    "work that was under way is interrupted, and a result that was there stays",
    { timeout: 60_000 },
    async () => {
      server = await ServerProcess.start(dir);
      const call = callerOf("2026");
      const waiting = idOf(await call("wait"));
      const finished = idOf(await call("quick"));
      await server.until(finished, "completed");
      await restart();
      const lost = await call("durable_task_get", { taskId: waiting, waitSeconds: 25 });
      expect(lost).toMatchObject({
        isError: true,
        structuredContent: { status: "failed", error: { code: "interrupted", retryable: true } },
      });
      const kept = await call("durable_task_get", { taskId: finished, waitSeconds: 25 });
      expect(kept.content).toEqual([{ type: "text", text: "finished before the crash" }]);
    },
  );

  test("a cancel that comes after the crash ends what waits for a person", { timeout: 60_000 }, async () => {
    server = await ServerProcess.start(dir);
    const call = callerOf("2026");
    const taskId = idOf(await call("greet", { greeting: "Hello" }));
    await server.until(taskId, "input_required");
    await restart();
    await call("durable_task_cancel", { taskId });
    const ended = await call("durable_task_get", { taskId, waitSeconds: 20 });
    expect(ended.structuredContent).toMatchObject({ taskId, status: "cancelled" });
  });
});
