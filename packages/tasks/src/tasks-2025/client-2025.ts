import { assertInputSupported, isLongJobsError } from "@longjobs/core";
import type { InputRequest, JsonObject, RequestContext } from "@longjobs/core";
import { progressSender } from "../progress-sender.ts";
import type { TaskWish } from "../tool-call.ts";
import { relatedTo } from "./wire-2025.ts";

/** The client of one request of revision 2025-11-25 or earlier, whatever SDK it came through. */
export interface Client2025 {
  /**
   * The client capabilities by which it can be asked while this request is open; none where its answer could not come
   * back: to a stateless server, or to one that answers in plain JSON.
   */
  readonly askable: JsonObject;
  /** Sends a question within this request, and waits for the answer as long as it takes. */
  ask(question: InputRequest, signal: AbortSignal): Promise<unknown>;
  /** Sends a notification outside of any request; absent where no connection outlives the request. */
  readonly notify?: (notification: object) => Promise<void>;
}

/** What a call says that wants to be a task, with what is known of its client. */
export function toTaskWish(
  wish: { readonly ttl?: number },
  { askable, notify }: Client2025,
  progressToken: string | number | undefined,
): TaskWish {
  if (progressToken === undefined || notify === undefined) return { ...wish, askable };
  const progressFor: TaskWish["progressFor"] = (taskId) =>
    progressSender(progressToken, notify, { _meta: relatedTo(taskId) }) ?? (() => undefined);
  return { ...wish, askable, progressFor };
}

/** One call of a task method by such a client. */
export interface Caller2025 {
  readonly request: RequestContext;
  readonly signal: AbortSignal;
  readonly client: Client2025;
  /** The same object for all requests of one connection. */
  readonly connection: object;
}

/** The longest time-out there is: a person may take their time. More would overflow the timer. */
export const longestTimeoutMs: number = 2 ** 31 - 1;

/** True when the client declared the kind of the question. */
export function canAsk(question: InputRequest, { askable }: Client2025): boolean {
  try {
    assertInputSupported(question, { capabilities: askable });
    return true;
  } catch (error) {
    if (isLongJobsError(error, "input_not_supported")) return false;
    throw error;
  }
}

/** The question as this revision words it: a page to open has an id of its own. */
export function toQuestion2025(question: InputRequest, elicitationId: string): InputRequest {
  if (question.params?.["mode"] !== "url") return question;
  return { ...question, params: { elicitationId, ...question.params } };
}
