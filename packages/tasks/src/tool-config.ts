import type {
  InputRequest,
  InputResponse,
  RecoveryRules,
  RequestContext,
  RunLimits,
  TaskHandle,
} from "@longjobs/core";
import type { Ask } from "./ask.ts";
import { declaresProperty } from "./listed-schema.ts";
import type { SchemaOutput, ToolSchema } from "./standard-schema.ts";

/** What a tool answers with: the protocol's `CallToolResult`. */
export interface ToolResult {
  readonly content?: readonly { readonly type: string; readonly [key: string]: unknown }[];
  readonly structuredContent?: { readonly [key: string]: unknown };
  /** True for an error that the model should see. The task is `completed` all the same. */
  readonly isError?: boolean;
  readonly _meta?: { readonly [key: string]: unknown };
}

/** What a handler works with: the task's handle, and whose call it serves. */
export interface ToolTask extends TaskHandle {
  /** Whose task it is; `undefined` where everyone shares. */
  readonly scope: string | undefined;
  /** The `_meta` of the call; empty in an attempt that another process began, which has no call. */
  readonly meta: { readonly [key: string]: unknown };
  /**
   * Asks the person behind the client one question, and waits for the answer as long as it takes. Asked again after a
   * restart it gives the answer that is there. Several may be open at once.
   *
   * @throws `input_declined`, `input_cancelled`, and whatever `requestInput` rejects with.
   */
  ask(question: Ask): Promise<string>;
}

/** The work of a task tool. What it throws becomes a tool error, and a protocol error the task's error. */
export type ToolHandler<Arguments> = (
  args: Arguments,
  task: ToolTask,
) => ToolResult | void | Promise<ToolResult | void>;

/** The call as `prepare` sees it. */
export interface PrepareRequest extends RequestContext {
  readonly scope: string | undefined;
  /** Every answer accepted so far, by the key of its question; each fits the schema that was asked for. */
  readonly inputResponses: { readonly [key: string]: InputResponse };
}

/** What `prepare` decides. */
export type Prepared<Arguments> =
  /** Start the work; with `arguments`, on those instead. */
  | { readonly arguments?: Arguments | undefined; readonly inputRequests?: undefined }
  /** Ask first. The client calls again with the answers, and `prepare` runs again. */
  | {
      readonly inputRequests: { readonly [key: string]: InputRequest | undefined };
      readonly arguments?: undefined;
    };

/** Configuration of one task tool. */
export interface TaskToolConfig<
  Input extends ToolSchema | undefined = ToolSchema | undefined,
  Output extends ToolSchema | undefined = ToolSchema | undefined,
> {
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: Input;
  /** Checked on the final result; a result that does not fit is a tool error. */
  readonly outputSchema?: Output;
  readonly annotations?: { readonly [hint: string]: unknown };
  readonly _meta?: { readonly [key: string]: unknown };
  /**
   * Runs after the arguments were checked and before a task exists. May ask for input by the protocol's
   * multi-round-trip flow, or change the arguments. Must have no effects: it runs once per round.
   */
  readonly prepare?: (
    args: SchemaOutput<Input>,
    request: PrepareRequest,
  ) => Prepared<SchemaOutput<Input>> | void | Promise<Prepared<SchemaOutput<Input>> | void>;
  /** `required`: only for clients that declare the Tasks extension; others get -32021. @default "optional" */
  readonly taskSupport?: "optional" | "required";
  /**
   * What a client without tasks gets. `tools`: the result within the inline budget, else a handle, and three tools to follow
   * it with. `wait`: the result when the work is done, with progress notifications if the client wants them.
   * @default "tools"
   */
  readonly fallback?: "tools" | "wait";
  /**
   * How long a call may run before its client gets a task handle, in milliseconds, from 0 to 60,000. 0 records
   * the task before the handler starts. @default 500
   */
  readonly inlineBudgetMs?: number;
  /**
   * What becomes of a task whose process stopped before its handler had ended. `resume` runs the handler again, with the same
   * arguments, its `checkpoint` and the answers that were given: for handlers that may begin twice. `fail` ends the task as
   * interrupted. @default "fail": a handler may have had effects
   */
  readonly onInterrupted?: "fail" | "resume";
  /**
   * With `resume`: after how many crashes in the middle of a run a task is given up. A shutdown is no crash, nor is the end of a
   * process while the task had been waiting for a person for more than two leases. @default 3
   */
  readonly maxAttempts?: number;
  /**
   * How long one run of the handler may work, in milliseconds; waiting for answers does not count. Then its signal is aborted,
   * and its task fails with `deadline_exceeded`. `null` for no limit. @default null
   */
  readonly maxRunMs?: number | null;
  /**
   * How long a handler may go on after a cancel, in milliseconds, before its task becomes `cancelled` without it; `null`
   * waits for the handler. @default null
   */
  readonly cancelGraceMs?: number | null;
  /**
   * The name of an argument that clients, and models, may pass an idempotency key in, such as `"idempotencyKey"`: a call that
   * is repeated with the same key and the same other arguments is one piece of work. It is added to the listed schema, and
   * neither `inputSchema` nor the handler sees it. @default none: keys come in the metadata of requests alone
   */
  readonly idempotencyArgument?: string;
  /** How long the finished task stays readable, in milliseconds; `null` for ever. @default the engine's */
  readonly retentionMs?: number | null;
  /** The polling interval suggested to clients, in milliseconds; `null` suggests none. @default the engine's */
  readonly pollIntervalMs?: number | null;
}

/** The configuration of some tool: what it prepares is only known to itself. */
export type AnyToolConfig = Omit<TaskToolConfig, "prepare"> & {
  readonly prepare?: (
    args: never,
    request: PrepareRequest,
  ) => Prepared<unknown> | void | Promise<Prepared<unknown> | void>;
};

/** A registered task tool, its options checked and its defaults filled in. */
export interface TaskTool {
  readonly name: string;
  readonly config: AnyToolConfig;
  readonly handler: ToolHandler<never>;
  readonly taskSupport: "optional" | "required";
  readonly fallback: "tools" | "wait";
  readonly inlineBudgetMs: number;
  readonly recovery: RecoveryRules;
  readonly limits: RunLimits;
  readonly idempotencyArgument: string | undefined;
}

/** Work that hosts would cut off anyway is no inline work: the shortest host time-out in use is one second. */
const defaultInlineBudgetMs = 500;
/** Timers count in a signed 32-bit number of milliseconds. */
const maxTimerMs = 2 ** 31 - 1;
const maxInlineBudgetMs = 60_000;

/** A crash may be the machine's fault once or twice; a third time in the middle of the same task is the task's. */
const defaultMaxAttempts = 3;

/** Checks a tool's configuration, once, when it is registered. @throws TypeError, RangeError */
export function resolveTaskTool(name: string, config: AnyToolConfig, handler: ToolHandler<never>): TaskTool {
  if (typeof name !== "string" || name === "") throw new TypeError("A task tool needs a name.");
  if (typeof config !== "object" || config === null)
    throw new TypeError(`The task tool ${name} needs a configuration object; {} is enough.`);
  if (typeof handler !== "function") throw new TypeError(`The task tool ${name} needs a handler.`);
  const { taskSupport = "optional", fallback = "tools", inlineBudgetMs = defaultInlineBudgetMs } = config;
  oneOf(`taskSupport of ${name}`, taskSupport, ["optional", "required"]);
  oneOf(`fallback of ${name}`, fallback, ["tools", "wait"]);
  if (config.prepare !== undefined && typeof config.prepare !== "function")
    throw new TypeError(`prepare of ${name} must be a function.`);
  wholeMs(`inlineBudgetMs of ${name}`, inlineBudgetMs, 0, maxInlineBudgetMs);
  for (const option of ["retentionMs", "pollIntervalMs"] as const) {
    const value = config[option];
    if (value !== undefined && value !== null)
      wholeMs(`${option} of ${name}`, value, 1, Number.MAX_SAFE_INTEGER);
  }
  const {
    onInterrupted = "fail",
    maxAttempts = defaultMaxAttempts,
    maxRunMs = null,
    cancelGraceMs = null,
    idempotencyArgument,
  } = config;
  oneOf(`onInterrupted of ${name}`, onInterrupted, ["fail", "resume"]);
  if (!Number.isSafeInteger(maxAttempts) || maxAttempts < 1)
    throw new RangeError(`maxAttempts of ${name} must be a whole number from 1.`);
  if (maxRunMs !== null) wholeMs(`maxRunMs of ${name}`, maxRunMs, 1, maxTimerMs);
  if (cancelGraceMs !== null) wholeMs(`cancelGraceMs of ${name}`, cancelGraceMs, 0, maxTimerMs);
  if (idempotencyArgument !== undefined) assertKeyArgument(name, idempotencyArgument, config.inputSchema);
  return {
    name,
    config,
    handler,
    taskSupport,
    fallback,
    inlineBudgetMs,
    recovery: { onInterrupted, maxAttempts },
    limits: { maxRunMs, cancelGraceMs },
    idempotencyArgument,
  };
}

function assertKeyArgument(name: string, argument: unknown, inputSchema: ToolSchema | undefined): void {
  if (typeof argument !== "string" || !/^[A-Za-z]\w{0,63}$/.test(argument))
    throw new TypeError(
      `idempotencyArgument of ${name} must be 1 to 64 letters, digits and underscores, a letter first.`,
    );
  if (declaresProperty(inputSchema, argument))
    throw new TypeError(
      `The inputSchema of ${name} has ${argument} already; choose another idempotencyArgument.`,
    );
}

function oneOf(option: string, value: string, allowed: readonly string[]): void {
  if (!allowed.includes(value)) throw new TypeError(`${option} must be one of: ${allowed.join(", ")}.`);
}

function wholeMs(option: string, value: number, min: number, max: number): void {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${option} must be a whole number of milliseconds.`);
  if (value < min || value > max)
    throw new RangeError(`${option} must be between ${min} and ${max} milliseconds.`);
}
