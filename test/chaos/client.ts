import { setTimeout as delay } from "node:timers/promises";

import { sendRequest, type Answer, type Request } from "../../examples/load-balanced/src/send-request.ts";
import type { Accepted, GivenAnswer, Read, Span, TaskView } from "./history.ts";
import { between, type Random } from "./random.ts";

/** What the clients of a run have seen, together. */
export interface ClientNotes {
  readonly accepted: Accepted[];
  readonly reads: Read[];
  readonly answers: GivenAnswer[];
  readonly cancelled: Set<string>;
  readonly refusals: string[];
}

/** A request that takes longer is given up: its instance may be asleep. */
const requestTimeoutMs = 2_500;
const tools = ["settle", "settle", "collect", "collect", "once"] as const;

/** Starts tasks at random and sees each of them to its end, whatever the servers do. */
export class ChaosClient {
  readonly #name: string;
  readonly #url: string;
  readonly #random: Random;
  readonly #notes: ClientNotes;
  readonly #patience: AbortSignal;
  #calls = 0;

  /** @param patience - Aborted when even a patient client gives up. */
  constructor(name: string, url: string, random: Random, notes: ClientNotes, patience: AbortSignal) {
    this.#name = name;
    this.#url = url;
    this.#random = random;
    this.#notes = notes;
    this.#patience = patience;
  }

  /** Starts tasks, one after the other, until the signal is aborted, and sees the last one to its end. */
  async work(until: AbortSignal): Promise<void> {
    while (!until.aborted) {
      const taskId = await this.#call(until);
      if (taskId !== undefined) await this.#follow(taskId);
    }
  }

  /** Reads tasks of anybody, old and new, until the signal is aborted. */
  async look(until: AbortSignal): Promise<void> {
    while (!until.aborted) {
      const { accepted } = this.#notes;
      const some = accepted[Math.floor(this.#random() * accepted.length)];
      if (some !== undefined) await this.#read(some.taskId);
      await delay(20);
    }
  }

  /** A call with a key is repeated until it is answered; one without is sent once, and what became of it is not known. */
  async #call(until: AbortSignal): Promise<string | undefined> {
    this.#calls += 1;
    const tool = tools[Math.floor(this.#random() * tools.length)] ?? "settle";
    const steps = Math.ceil(between(this.#random, 0, 5));
    const params = { name: tool, arguments: { steps, stepMs: Math.ceil(between(this.#random, 5, 250)) } };
    const keyed = this.#random() < 0.7;
    const meta = { "longjobs/idempotencyKey": `${this.#name}, call ${this.#calls}` };
    const request: Request = { method: "tools/call", params, ...(keyed ? { meta } : {}) };
    const answer = keyed
      ? await this.#untilAnswered(request)
      : await this.#send(request, between(this.#random, 20, requestTimeoutMs));
    const taskId = (answer?.result as { readonly taskId?: string } | undefined)?.taskId;
    if (isInterrupted(answer) && tool !== "once")
      this.#notes.refusals.push(`${tool} may begin again, and was answered ${JSON.stringify(answer)}.`);
    if (taskId !== undefined) this.#notes.accepted.push({ taskId, tool });
    else if (!until.aborted) await delay(50);
    return taskId;
  }

  async #follow(taskId: string): Promise<void> {
    const cancelsAfter = this.#random() < 0.15 ? Math.floor(between(this.#random, 0, 8)) : Infinity;
    for (let polls = 0; ; polls += 1) {
      if (this.#patience.aborted) return void this.#notes.refusals.push(`${taskId} did not come to its end.`);
      const view = await this.#read(taskId);
      if (view !== undefined && view.status !== "working" && view.status !== "input_required") return;
      if (polls === cancelsAfter) await this.#cancel(taskId);
      for (const key of Object.keys(view?.inputRequests ?? {})) await this.#answer(taskId, key);
      await delay(between(this.#random, 10, 150));
    }
  }

  async #read(taskId: string): Promise<TaskView | undefined> {
    const { answer, ...span } = await this.#timed({ method: "tasks/get", params: { taskId } });
    const view = answer?.result as TaskView | undefined;
    if (view !== undefined) this.#notes.reads.push({ view, ...span });
    return view;
  }

  /** Alone, twice, or against a rival with another answer; or not yet. */
  async #answer(taskId: string, key: string): Promise<void> {
    const chance = this.#random();
    const send = async (who: string): Promise<void> => {
      const value = `${who} of ${this.#name}, ${Math.floor(this.#random() * 1e6)}`;
      const inputResponses = { [key]: { action: "accept", content: { answer: value } } };
      const noted = { taskId, key, value };
      const { answer, sentMs, answeredMs } = await this.#timed({
        method: "tasks/update",
        params: { taskId, inputResponses },
      });
      const acknowledged = answer?.result === undefined ? {} : { acknowledgedMs: answeredMs };
      this.#notes.answers.push({ ...noted, sentMs, ...acknowledged });
    };
    if (chance < 0.4) await send("somebody");
    else if (chance < 0.6) await Promise.all([send("somebody"), send("somebody else")]);
  }

  async #cancel(taskId: string): Promise<void> {
    this.#notes.cancelled.add(taskId);
    await this.#send({ method: "tasks/cancel", params: { taskId } });
  }

  async #timed(request: Request): Promise<Span & { readonly answer: Answer | undefined }> {
    const sentMs = performance.now();
    const answer = await this.#send(request);
    return { sentMs, answeredMs: performance.now(), answer };
  }

  async #untilAnswered(request: Request): Promise<Answer | undefined> {
    for (;;) {
      const answer = await this.#send(request);
      if (answer?.result !== undefined || isInterrupted(answer)) return answer;
      if (this.#patience.aborted) {
        this.#notes.refusals.push(`${JSON.stringify(request)} was never answered.`);
        return undefined;
      }
      await delay(50);
    }
  }

  /** `undefined`, or an error that may be gone later, when it has to be sent again. */
  async #send(request: Request, timeoutMs: number = requestTimeoutMs): Promise<Answer | undefined> {
    const answer = await sendRequest(this.#url, {
      ...request,
      signal: AbortSignal.timeout(Math.ceil(timeoutMs)),
    });
    if (answer?.error !== undefined && answer.error.data?.["retryable"] !== true)
      this.#notes.refusals.push(`${JSON.stringify(request)} was refused: ${JSON.stringify(answer.error)}`);
    return answer;
  }
}

/** True for the end of a call whose work must not begin again: it stays so, however often the call is repeated. */
function isInterrupted(answer: Answer | undefined): boolean {
  return answer?.error?.data?.["reason"] === "interrupted";
}
