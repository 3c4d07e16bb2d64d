import { MemoryTaskStore } from "@longjobs/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";

import { createTeamTasks, localVerifier, serveUsers } from "./snippets/users.ts";
import { start } from "./support/entries.ts";
import { openEntry } from "./support/entries.ts";
import { legacyFrame, modernFrame } from "./support/frames.ts";
import { errorOf, HttpDoor, parseFrames, routingHeaders } from "./support/http-door.ts";
import { gatedTool, greeter } from "./support/tools.ts";
import type { WireMessage } from "./support/wire.ts";

type Served = ReturnType<typeof serveUsers>;
type Era = "tasks" | "2026" | "2025";

let server: Served;

beforeEach(() => {
  server = serveUsers(new MemoryTaskStore(), localVerifier({ "ada-1": "ada", "ada-2": "ada", eve: "eve" }));
  greeter(server.tasks);
});

afterEach(async () => {
  await server.close();
  await server.tasks.close({ shutdownGraceMs: 0 });
});

function post(era: Era, method: string, params: object, token: string | undefined): Promise<Response> {
  const modern = era !== "2025";
  const frame = modern
    ? modernFrame(method, params, { declare: era === "tasks" })
    : legacyFrame(method, params);
  const headers: Record<string, string> = {
    ...routingHeaders(method, params),
    ...(modern ? {} : { "mcp-protocol-version": "2025-11-25" }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
  };
  return server.fetch(
    new Request("http://127.0.0.1/mcp", { method: "POST", headers, body: JSON.stringify(frame) }),
  );
}

async function send(era: Era, method: string, params: object, token: string): Promise<WireMessage> {
  const response = await post(era, method, params, token);
  const frames = parseFrames(await response.text(), response.headers.get("content-type") ?? "");
  const message = frames.find(({ method: name }) => name === undefined);
  if (message === undefined) throw new Error("No answer.");
  return message;
}

function idOf({ result }: WireMessage): string {
  return String(result?.taskId ?? result?.structuredContent?.["taskId"]);
}

/** Every way to ask about a task, as one text without the id. */
async function look(taskId: string, token: string): Promise<readonly string[]> {
  const call = { name: "durable_task_get", arguments: { taskId } };
  const replies = [
    await send("tasks", "tasks/get", { taskId }, token),
    await send("2026", "tools/call", call, token),
    await send("2025", "tools/call", call, token),
  ];
  return replies.map(({ result, error }) => JSON.stringify({ result, error }).replaceAll(taskId, "ID"));
}

describe("two users of one host, behind the SDK's bearer auth", () => {
  test.for(["tasks", "2026", "2025"] as const)(
    "%s: a task is its owner's alone, whatever token she comes with",
    async (era) => {
      const taskId = idOf(await send(era, "tools/call", { name: "greet", arguments: {} }, "ada-1"));
      const unknown = "00000000-0000-4000-8000-000000000000";
      expect(await look(taskId, "eve"), "byte for byte like an unknown one").toEqual(
        await look(unknown, "eve"),
      );
      expect((await look(taskId, "ada-2")).every((reply) => reply.includes("input_required"))).toBe(true);
      const stolen = { name: "durable_task_respond", arguments: { taskId, response: "Eve" } };
      expect((await send("2026", "tools/call", stolen, "eve")).result).toMatchObject({ isError: true });
      const mine = { name: "durable_task_respond", arguments: { taskId, response: "Ada" } };
      expect((await send("2026", "tools/call", mine, "ada-2")).result?.isError).toBeUndefined();
      const waiting = { name: "durable_task_get", arguments: { taskId, waitSeconds: 5 } };
      const done = await send("2026", "tools/call", waiting, "ada-1");
      expect(done.result?.content?.[0]?.text).toContain("Ada");
    },
  );

  test.for(["tasks", "2026", "2025"] as const)(
    "%s: without a token, and with a wrong one, nothing is served",
    async (era) => {
      for (const token of [undefined, "wrong"]) {
        const response = await post(era, "tools/call", { name: "greet", arguments: {} }, token);
        expect(response.status).toBe(401);
      }
      expect(server.tasks.stats().attempts).toBe(0);
    },
  );
});

test("a scope of the server's own shares tasks in a team, and refuses who is in none", async () => {
  await using tasks = createTeamTasks(new MemoryTaskStore());
  const tool = gatedTool(tasks, "work");
  const client = await openEntry(tasks);
  const of = (sub: string, team?: string) => ({ auth: { clientId: "host", extra: { iss: "i", sub, team } } });
  const taskId = await start(client, "work", {}, of("ada", "red"));
  const reply = await client.call("durable_task_get", { taskId }, of("bob", "red"));
  expect(reply.structuredContent).toMatchObject({ status: "working" });
  const foreign = await client.call("durable_task_get", { taskId }, of("eve", "blue"));
  expect(foreign.structuredContent).toMatchObject({ error: { code: "unknown_task" } });
  const nobody = await new HttpDoor(tasks).send("tasks/get", { taskId }, of("eve"));
  expect(errorOf(nobody)).toEqual({ code: -32_001, message: "You are in no team." });
  tool.gate.open();
});
