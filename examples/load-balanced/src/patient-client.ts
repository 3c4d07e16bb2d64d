import { setTimeout as delay } from "node:timers/promises";

/** A task as `tasks/get` shows it. */
export interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly inputRequests?: { readonly [key: string]: { readonly params: { readonly message: string } } };
  readonly result?: {
    readonly content: readonly { readonly text: string }[];
    readonly structuredContent: { readonly [name: string]: unknown };
  };
  readonly error?: { readonly message: string };
}

const clientCapabilities = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };

/** An instance that says nothing for so long is taken for dead: the request is repeated. */
const requestTimeoutMs = 10_000;

/**
 * A client of revision 2026-07-28 that expects instances to die: it repeats a request until it is answered. Polls, answers and
 * cancels may come twice by themselves; a call of a tool has an idempotency key, so that it is one task however often it comes.
 */
export class PatientClient {
  readonly #url: string;
  #calls = 0;
  /** How many requests were sent again. */
  repeats = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Calls a tool. @throws what the server refuses it with. */
  async callTool(name: string, args: object, idempotencyKey: string): Promise<Task> {
    const meta = { "longjobs/idempotencyKey": idempotencyKey };
    return this.#untilAnswered("tools/call", name, { name, arguments: args }, meta);
  }

  async getTask(taskId: string): Promise<Task> {
    return this.#untilAnswered("tasks/get", taskId, { taskId });
  }

  async answer(taskId: string, key: string, answer: string): Promise<void> {
    const inputResponses = { [key]: { action: "accept", content: { answer } } };
    await this.#untilAnswered("tasks/update", taskId, { taskId, inputResponses });
  }

  async cancel(taskId: string): Promise<void> {
    await this.#untilAnswered("tasks/cancel", taskId, { taskId });
  }

  async #untilAnswered(method: string, name: string, params: object, meta: object = {}): Promise<Task> {
    for (;;) {
      const answer = await this.#send(method, name, params, meta);
      if (answer?.result !== undefined) return answer.result;
      if (answer?.error !== undefined && answer.error.data?.retryable !== true)
        throw new Error(`${method} of ${name}: ${JSON.stringify(answer.error)}`);
      this.repeats += 1;
      await delay(100);
    }
  }

  /** `undefined` when nobody answered: whether the request was carried out is not known. */
  async #send(method: string, name: string, params: object, meta: object): Promise<Answer | undefined> {
    this.#calls += 1;
    try {
      const response = await fetch(this.#url, {
        method: "POST",
        signal: AbortSignal.timeout(requestTimeoutMs),
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2026-07-28",
          "mcp-method": method,
          "mcp-name": name,
        },
        body: JSON.stringify({
          jsonrpc: "2.0",
          id: this.#calls,
          method,
          params: {
            ...params,
            _meta: {
              "io.modelcontextprotocol/protocolVersion": "2026-07-28",
              "io.modelcontextprotocol/clientInfo": { name: "patient-client", version: "1.0.0" },
              "io.modelcontextprotocol/clientCapabilities": clientCapabilities,
              ...meta,
            },
          },
        }),
      });
      const body = await response.text();
      const json = body.startsWith("{") ? body : /^data: (\{.*"id":.*)$/m.exec(body)?.[1];
      return json === undefined ? undefined : (JSON.parse(json) as Answer);
    } catch {
      return undefined;
    }
  }
}

interface Answer {
  readonly result?: Task;
  readonly error?: { readonly message: string; readonly data?: { readonly retryable?: boolean } };
}
