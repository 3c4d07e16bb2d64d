import { setTimeout as delay } from "node:timers/promises";

import type { Client, Transport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  resultFromTaskOutcome,
  type RawClientDispatch,
  type TaskEnabledSession,
  type ToolExecution,
} from "@modelcontextprotocol/ext-tasks/client";

import { parseFrames, routingHeaders } from "../support/http-door.ts";
import { textOf, type ToolReply } from "./by-tools.ts";
import type { Job, ScenarioClient, Settled } from "./scenario.ts";

export const clientInfo = { name: "scenario", version: "1.0.0" };
export const extCapabilities = {
  elicitation: { form: {} },
  extensions: { "io.modelcontextprotocol/tasks": {} },
};

/** Follows work with the official client of the extension. Without `dispatch` it speaks the tasks of 2025-11-25. */
export function byExtTasks(
  plain: ScenarioClient,
  client: Client,
  answer: (question: string) => string,
  dispatch: RawClientDispatch | undefined,
): ScenarioClient {
  const asked: Settled["asked"][number][] = [];
  const raw =
    dispatch === undefined
      ? {}
      : {
          rawDispatch: dispatch,
          v2RequestFraming: {
            protocolVersion: "2026-07-28",
            clientInfo,
            clientCapabilities: extCapabilities,
          },
        };
  const session = createTaskSessionFromClient(client, {
    ...raw,
    endpointId: "one-server",
    onInputRequest: createApplicationInputHandler({
      elicitation: async ({ params }) => {
        asked.push("the client");
        return { action: "accept", content: { answer: answer(params["message"] as string) } };
      },
      sampling: () => Promise.reject(new Error("Nothing is sampled here.")),
      roots: async () => ({ roots: [] }),
    }),
  });
  const follow = async (execution: ToolExecution<unknown>): Promise<Job> => {
    if (execution.kind !== "task") throw new Error("The call did not become a task.");
    // On 2025-11-25 it fetches a result when there is one, and so never waits where a question could reach it.
    const answers = dispatch === undefined ? await plain.resume?.(execution.handle.taskId) : undefined;
    return new Execution(session, execution, asked, answers);
  };
  return {
    ...plain,
    call: async (name, args) => {
      const { outcome } = await (await session.callTool(name, { ...args })).settle();
      return textOf(resultFromTaskOutcome(outcome) as ToolReply);
    },
    start: async (name, args) =>
      follow(await session.callTool(name, { ...args }, { task: { preference: "prefer" } })),
    resume: async (reference) => follow(await session.resumeTask(JSON.parse(reference))),
    // The session itself is dropped: closing it would cancel what it started.
    close: () => client.close(),
  };
}

class Execution implements Job {
  readonly way: Job["way"];
  readonly reference: string;
  readonly #session: TaskEnabledSession;
  readonly #execution: Extract<ToolExecution<unknown>, { kind: "task" }>;
  readonly #asked: Settled["asked"][number][];
  readonly #answers: Job | undefined;

  /** @param answers - Answers by the tools, where the client is asked nothing itself. */
  constructor(
    session: TaskEnabledSession,
    execution: Extract<ToolExecution<unknown>, { kind: "task" }>,
    asked: Settled["asked"][number][],
    answers: Job | undefined,
  ) {
    this.way = answers === undefined ? "task" : "2025-11-25 task";
    this.reference = JSON.stringify(execution.serializeReference());
    this.#session = session;
    this.#execution = execution;
    this.#asked = asked;
    this.#answers = answers;
  }

  readonly progress = async (): Promise<"status"> => {
    const task = this.#session.task(this.#execution.handle.taskId);
    while ((await task.snapshot()).statusMessage === undefined) await delay(20);
    return "status";
  };

  async settle(): Promise<Settled> {
    const answered = this.#answers?.settle();
    const { outcome } = await this.#execution.settle();
    const asked = (await answered)?.asked ?? this.#asked.splice(0);
    return { text: textOf(resultFromTaskOutcome(outcome) as ToolReply), asked };
  }

  readonly cancel = async (): Promise<string> => {
    await this.#execution.cancel();
    return (await this.#execution.settle()).outcome.status;
  };
}

/**
 * Sends raw frames over the transport of a client, beside its own. Before the client connects: it hands on what comes to
 * whoever listened first.
 */
export function dispatchOver(transport: Transport): RawClientDispatch {
  const open = new Map<unknown, (reply: Reply) => void>();
  const onmessage: Transport["onmessage"] = (message) => {
    if ("id" in message) open.get(message.id)?.(message as Reply);
  };
  Object.assign(transport, { onmessage });
  return async (framed) => {
    const id = `raw-${open.size + 1}`;
    const reply = new Promise<Reply>((resolve) => open.set(id, resolve));
    await transport.send({ jsonrpc: "2.0", id, ...(framed as { readonly method: string }) });
    return toOutcome(await reply);
  };
}

/** One POST for one frame, as the extension wants it over HTTP. */
export function dispatchTo(url: string): RawClientDispatch {
  return async (framed, options) => {
    const request = framed as { readonly method: string; readonly params?: object };
    const headers = new Headers(routingHeaders(request.method, request.params ?? {}));
    // Set, never spread: for task methods the client brings the same header in another spelling.
    for (const [name, value] of Object.entries(options?.context?.headers ?? {})) headers.set(name, value);
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...request });
    const response = await fetch(url, { method: "POST", headers, body, signal: options?.signal ?? null });
    const messages = parseFrames(await response.text(), response.headers.get("content-type") ?? "");
    const reply = messages.find(({ method }) => method === undefined);
    if (reply === undefined) throw new Error("The server sent no answer.");
    return toOutcome(reply as Reply);
  };
}

type Outcome = Awaited<ReturnType<RawClientDispatch>>;
type Reply = {
  readonly result?: Extract<Outcome, { kind: "result" }>["result"];
  readonly error?: Extract<Outcome, { kind: "error" }>["error"];
};

function toOutcome({ result = null, error }: Reply): Outcome {
  return error === undefined ? { kind: "result", result } : { kind: "error", error };
}
