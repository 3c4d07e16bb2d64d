/** Options of the tools for clients that do not have tasks. */
export interface FallbackOptions {
  /** What the names of the three tools begin with; letters, digits and `_`, at most 40. @default "durable_task" */
  readonly prefix?: string;
  /** The longest wait of one call, in seconds from 1 to 3,600: keep it below the time-out of the hosts. @default 25 */
  readonly maxWaitSeconds?: number;
  /** Descriptions, in place of our own. */
  readonly descriptions?: { readonly get?: string; readonly respond?: string; readonly cancel?: string };
}

/** {@link FallbackOptions} with every default filled in. */
export interface ResolvedFallbackOptions {
  readonly names: { readonly get: string; readonly respond: string; readonly cancel: string };
  readonly maxWaitSeconds: number;
  readonly descriptions: { readonly get: string; readonly respond: string; readonly cancel: string };
}

/** Checks the options, once. @throws TypeError, RangeError */
export function resolveFallbackOptions(options: FallbackOptions = {}): ResolvedFallbackOptions {
  assertObject("fallbackTools", options);
  const { prefix = "durable_task", maxWaitSeconds = 25, descriptions = {} } = options;
  if (typeof prefix !== "string" || !/^\w{1,40}$/.test(prefix)) {
    throw new TypeError("fallbackTools.prefix must be 1 to 40 letters, digits and underscores.");
  }
  if (typeof maxWaitSeconds !== "number")
    throw new TypeError("fallbackTools.maxWaitSeconds must be a number of seconds.");
  if (!(maxWaitSeconds >= 1 && maxWaitSeconds <= 3_600)) {
    throw new RangeError("fallbackTools.maxWaitSeconds must be between 1 and 3600.");
  }
  assertObject("fallbackTools.descriptions", descriptions);
  const names = { get: `${prefix}_get`, respond: `${prefix}_respond`, cancel: `${prefix}_cancel` };
  return {
    names,
    maxWaitSeconds,
    descriptions: withTexts(texts(names, maxWaitSeconds), descriptions),
  };
}

function withTexts(
  own: ResolvedFallbackOptions["descriptions"],
  given: NonNullable<FallbackOptions["descriptions"]>,
): ResolvedFallbackOptions["descriptions"] {
  const text = (tool: "get" | "respond" | "cancel"): string => {
    const chosen: unknown = given[tool] ?? own[tool];
    if (typeof chosen === "string" && chosen !== "") return chosen;
    throw new TypeError(`fallbackTools.descriptions.${tool} must be a text.`);
  };
  return { get: text("get"), respond: text("respond"), cancel: text("cancel") };
}

function assertObject(option: string, value: unknown): void {
  if (typeof value !== "object" || value === null) throw new TypeError(`${option} must be an object.`);
}

/** Short: they stand in the context of every conversation. Together under 1,200 characters. */
function texts(
  { get }: ResolvedFallbackOptions["names"],
  maxWaitSeconds: number,
): ResolvedFallbackOptions["descriptions"] {
  return {
    get:
      "Gets the state of a long-running task that another tool started, and its result once it is finished. " +
      `Pass the taskId that tool gave you. With waitSeconds (at most ${maxWaitSeconds}) the call waits until the task is ` +
      "finished or has a question, so call it with the longest wait instead of calling it often. While the status is " +
      `working, the task is not finished: call ${get} again.`,
    respond:
      `Answers a question of a task (${get} shows it). Ask the user first unless you know the answer. Pass response for a ` +
      "single question, or answers by key for several. If an answer is refused, the reply says why and the question stays.",
    cancel:
      "Asks a task to stop. Work that is finished first keeps its result. Use it only when the user no longer wants the task.",
  };
}
