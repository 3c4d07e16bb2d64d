import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import type { JsonObject, JsonValue } from "@longjobs/core";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  resultFromTaskOutcome,
  type RawClientDispatch,
} from "@modelcontextprotocol/ext-tasks/client";
import { afterEach, expect, test } from "vitest";

import { parseFrames, routingHeaders } from "./support/http-door.ts";
import { ServerProcess } from "./support/server-process.ts";
import { assertWire } from "./support/wire.ts";

const clientInfo = { name: "official-client", version: "1.0.0" };
const clientCapabilities = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };

interface JsonRpcFault {
  readonly code: number;
  readonly message: string;
  readonly data?: JsonValue;
}

/** One POST for one frame. Everything that comes back is checked. */
function dispatchTo(url: string): RawClientDispatch {
  let id = 0;
  return async (framed, options) => {
    const request = framed as { readonly method: string; readonly params?: JsonObject };
    const headers = new Headers(routingHeaders(request.method, request.params ?? {}));
    // Set, never spread: for task methods the client brings the same header in another spelling.
    for (const [name, value] of Object.entries(options?.context?.headers ?? {})) headers.set(name, value);
    const body = JSON.stringify({ jsonrpc: "2.0", id: (id += 1), ...request });
    const signal = options?.signal ?? null;
    const response = await fetch(url, { method: "POST", headers, body, signal });
    const [message] = parseFrames(await response.text(), response.headers.get("content-type") ?? "");
    if (message === undefined) throw new Error("The server sent no answer.");
    assertWire(request.method, message);
    const { result = null, error } = message as unknown as { result?: JsonValue; error?: JsonRpcFault };
    return error === undefined ? { kind: "result", result } : { kind: "error", error };
  };
}

const clients: Client[] = [];
let server: ServerProcess | undefined;

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
  await server?.kill();
});

async function openSession(url: string, asked: string[]) {
  const client = new Client(clientInfo, {
    capabilities: clientCapabilities,
    versionNegotiation: { mode: "auto" },
  });
  clients.push(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return createTaskSessionFromClient(client, {
    endpointId: "longjobs-test",
    rawDispatch: dispatchTo(url),
    v2RequestFraming: { protocolVersion: "2026-07-28", clientInfo, clientCapabilities },
    onInputRequest: createApplicationInputHandler({
      elicitation: async ({ params }) => {
        asked.push((params as { message: string }).message);
        return { action: "accept", content: { name: "Ada" } };
      },
      sampling: async () => {
        throw new Error("Nothing is sampled here.");
      },
      roots: async () => ({ roots: [] }),
    }),
  });
}

type Session = Awaited<ReturnType<typeof openSession>>;

async function startTask(session: Session, name: string, args = {}) {
  const execution = await session.callTool(name, args);
  if (execution.kind !== "task") throw new Error(`${name} did not become a task.`);
  return execution;
}

test(
  "the official client calls a tool, answers it, cancels another, and after a SIGKILL of the server resumes a third by its reference",
  { timeout: 60_000 },
  async () => {
    const dir = await mkdtemp(join(tmpdir(), "longjobs-official-"));
    server = await ServerProcess.start(dir);
    const asked: string[] = [];
    const session = await openSession(server.url, asked);

    const greeting = await startTask(session, "greet", { greeting: "Hello" });
    const { outcome } = await greeting.settle();
    expect(asked).toEqual(["Who?"]);
    expect(resultFromTaskOutcome(outcome)).toMatchObject({
      content: [{ type: "text", text: "Hello, Ada!" }],
      structuredContent: { greeted: "Ada" },
    });

    const waiting = await startTask(session, "wait");
    await waiting.cancel();
    expect((await waiting.settle()).outcome.status).toBe("cancelled");

    const finished = (await startTask(session, "quick")).serializeReference();
    const interrupted = (await startTask(session, "wait")).serializeReference();
    const unanswered = (await startTask(session, "greet", { greeting: "Bye" })).serializeReference();
    await server.until(finished.taskId, "completed");
    await server.until(unanswered.taskId, "input_required");
    const { port } = server;
    await server.kill();
    server = await ServerProcess.start(dir, port);

    // References are text between the two lives of a client.
    const [first, second, third] = JSON.parse(JSON.stringify([finished, interrupted, unanswered])) as [
      typeof finished,
      typeof finished,
      typeof finished,
    ];
    const later = await openSession(server.url, asked);
    const resumed = await (await later.resumeTask(first)).settle();
    expect(resultFromTaskOutcome(resumed.outcome)).toMatchObject({
      content: [{ type: "text", text: "finished before the crash" }],
    });

    const lost = await (await later.resumeTask(second)).settle();
    expect(lost.outcome).toMatchObject({
      status: "failed",
      error: { code: -32_603, data: { reason: "interrupted", retryable: true } },
    });

    const answered = await (await later.resumeTask(third)).settle();
    expect(asked, "the question of the dead process was asked and answered").toEqual(["Who?", "Who?"]);
    expect(resultFromTaskOutcome(answered.outcome), "and its handler has gone on").toMatchObject({
      content: [{ type: "text", text: "Bye, Ada!" }],
      structuredContent: { greeted: "Ada" },
    });

    await expect(later.resumeTask({ ...first, taskId: "unknown" as never })).rejects.toMatchObject({
      code: -32_602,
    });
    await server.kill();
    await rm(dir, { recursive: true });
  },
);
