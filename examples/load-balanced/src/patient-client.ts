import { setTimeout as delay } from "node:timers/promises";
import { sendRequest } from "./send-request.ts";

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

/** An instance that says nothing for so long is taken for dead: the request is repeated. */
const requestTimeoutMs = 10_000;

/**
 * A client of revision 2026-07-28 that expects instances to die: it repeats a request until it is answered. Polls, answers and
 * cancels may come twice by themselves; a call of a tool has an idempotency key, so that it is one task however often it comes.
 */
export class PatientClient {
  readonly #url: string;
  /** How many requests were sent again. */
  repeats = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Calls a tool. @throws what the server refuses it with. */
  async callTool(name: string, args: object, idempotencyKey: string): Promise<Task> {
    const meta = { "longjobs/idempotencyKey": idempotencyKey };
    return this.#untilAnswered("tools/call", { name, arguments: args }, meta);
  }

  async getTask(taskId: string): Promise<Task> {
    return this.#untilAnswered("tasks/get", { taskId });
  }

  async answer(taskId: string, key: string, answer: string): Promise<void> {
    const inputResponses = { [key]: { action: "accept", content: { answer } } };
    await this.#untilAnswered("tasks/update", { taskId, inputResponses });
  }

  async cancel(taskId: string): Promise<void> {
    await this.#untilAnswered("tasks/cancel", { taskId });
  }

  async #untilAnswered(
    method: string,
    params: { readonly [name: string]: unknown },
    meta = {},
  ): Promise<Task> {
    for (;;) {
      const signal = AbortSignal.timeout(requestTimeoutMs);
      const answer = await sendRequest<Task>(this.#url, { method, params, meta, signal });
      if (answer?.result !== undefined) return answer.result;
      if (answer?.error !== undefined && answer.error.data?.["retryable"] !== true)
        throw new Error(`${method} of ${JSON.stringify(params)}: ${JSON.stringify(answer.error)}`);
      this.repeats += 1;
      await delay(100);
    }
  }
}
