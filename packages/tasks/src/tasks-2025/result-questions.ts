import type { InputRequest } from "@longjobs/core";
import { canAsk, toQuestion2025, type Client2025 } from "./client-2025.ts";
import { relatedTo } from "./wire-2025.ts";

/** What asking needs. */
export interface ResultQuestionsContext {
  readonly taskId: string;
  readonly client: Client2025;
  readonly answer: (wireKey: string, response: unknown) => Promise<unknown>;
  readonly onError: (error: unknown) => void;
}

/**
 * Puts the open questions of a task to the client that waits for its result, each once. A question that somebody
 * else answers first is withdrawn. One that the client fails to answer stays open, for another wait or another way.
 */
export class ResultQuestions {
  readonly #context: ResultQuestionsContext;
  /** By wire key; without a controller when the client is done with the question. */
  readonly #asked = new Map<string, AbortController | undefined>();
  #stopped = false;

  constructor(context: ResultQuestionsContext) {
    this.#context = context;
  }

  /** Brings the client up to date with what is open now. */
  put(open: { readonly [wireKey: string]: InputRequest }): void {
    if (this.#stopped) return;
    for (const [wireKey, controller] of this.#asked) {
      if (!Object.hasOwn(open, wireKey)) controller?.abort();
    }
    for (const [wireKey, question] of Object.entries(open)) {
      if (!this.#asked.has(wireKey) && canAsk(question, this.#context.client))
        void this.#ask(wireKey, question);
    }
  }

  /** Withdraws what is still unanswered, and asks no more. */
  stop(): void {
    this.#stopped = true;
    for (const controller of this.#asked.values()) controller?.abort();
  }

  async #ask(wireKey: string, question: InputRequest): Promise<void> {
    const { taskId, client, answer, onError } = this.#context;
    const controller = new AbortController();
    this.#asked.set(wireKey, controller);
    const { method, params } = toQuestion2025(question, `${taskId}:${wireKey}`);
    let response: unknown;
    try {
      response = await client.ask(
        { method, params: { ...params, _meta: relatedTo(taskId) } },
        controller.signal,
      );
    } catch {
      // The client went away, was told not to answer, or cannot: the question is open as before.
      return;
    } finally {
      // A withdrawal of what was answered would be a stray message.
      this.#asked.set(wireKey, undefined);
    }
    await answer(wireKey, response).catch(onError);
  }
}
