import {
  isTerminal,
  type AuthInfo,
  type DetailedTask,
  type InputResponse,
  type JsonObject,
  type RequestContext,
} from "@longjobs/core";
import { toStandardSchema } from "../listed-schema.ts";
import { describeIssues } from "../standard-schema.ts";
import type { ToolCall } from "../tool-call.ts";
import type { TaskTool } from "../tool-config.ts";
import type { Life } from "./life.ts";
import type { TestClock } from "./test-clock.ts";

/** How a simulated client calls. */
export interface SimulatedClientOptions {
  /** True for a client with the Tasks extension, false for one that has the fallback tools alone. @default true */
  readonly declaresTasks?: boolean;
  /** Whose calls they are, for servers with a `scope`. */
  readonly authInfo?: AuthInfo;
  /** What the client can be asked. @default forms and links */
  readonly capabilities?: JsonObject;
  /** How long it waits for a task, in real milliseconds, before it says that the test hangs. @default 10_000 */
  readonly patienceMs?: number;
}

/** What a call was answered with: a result, or the handle of a task. */
export type SimulatedAnswer =
  | { readonly result: JsonObject; readonly taskId?: undefined }
  | { readonly taskId: string; readonly result?: undefined };

const defaultPatienceMs = 10_000;
const longestWaitMs = 2 ** 31 - 1;

/** A client that talks to whichever process lives now, as a real one does that only has an address. */
export class SimulatedClient {
  readonly #lifeNow: () => Life;
  readonly #clock: TestClock;
  readonly #options: SimulatedClientOptions;

  constructor(lifeNow: () => Life, clock: TestClock, options: SimulatedClientOptions = {}) {
    this.#lifeNow = lifeNow;
    this.#clock = clock;
    this.#options = options;
  }

  /**
   * Calls a tool. Arguments that its schema does not take are an `isError` result, as an SDK answers them.
   *
   * @throws the JSON-RPC error that the server answers with; Error when the process dies before it answers.
   */
  async call(name: string, args: JsonObject = {}, meta: JsonObject = {}): Promise<SimulatedAnswer> {
    const life = this.#lifeNow();
    const tool = life.tools.get(name);
    if (tool === undefined) throw new Error(`No tool ${name} is registered.`);
    const parsed = await parseArguments(tool, args);
    if ("result" in parsed) return parsed;
    const serving = life.live(life.seam.serve(tool, parsed.args, this.#toCall(life, args, meta)));
    const served = await this.#passBudget(serving, tool.inlineBudgetMs);
    if (served.kind === "task") return { taskId: served.view.taskId };
    if (served.kind === "result") return { result: served.result };
    throw new Error("The tool asks before there is a task; test that with a real client.");
  }

  /** The task as it is now. @throws `unknown_task` */
  async get(taskId: string): Promise<DetailedTask> {
    const life = this.#lifeNow();
    return life.live(life.tasks.lifecycle.getTask(taskId, await this.#whose(life)));
  }

  /**
   * Waits until the task fits, across crashes, and resolves to it as it then is.
   *
   * @throws `unknown_task`; Error when it does not come to that, or ends otherwise.
   */
  async until(
    taskId: string,
    fits: DetailedTask["status"] | ((task: DetailedTask) => boolean),
  ): Promise<DetailedTask> {
    const isIt = typeof fits === "function" ? fits : ({ status }: DetailedTask) => status === fits;
    const { patienceMs = defaultPatienceMs } = this.#options;
    const deadline = AbortSignal.timeout(patienceMs);
    let seen: DetailedTask | undefined;
    while (!deadline.aborted) {
      const life = this.#lifeNow();
      try {
        const task = seen === undefined ? await this.get(taskId) : await this.#wait(life, seen, deadline);
        if (isIt(task)) return task;
        if (isTerminal(task.status)) throw new Error(`Task ${taskId} has ended; it is ${describe(task)}.`);
        seen = task;
      } catch (error) {
        if (!life.end.aborted && !deadline.aborted) throw error;
        if (deadline.aborted) break;
        await life.successor(deadline);
        seen = undefined;
      }
    }
    throw new Error(`Task ${taskId} did not come to it in ${patienceMs} ms; it is ${describe(seen)}.`);
  }

  /** Waits for the result. @throws Error that says how the task ended, when it has none. */
  async result(taskId: string): Promise<JsonObject> {
    const task = await this.until(taskId, ({ status }) => isTerminal(status));
    if (task.status === "completed") return task.result;
    throw new Error(`Task ${taskId} has no result; it is ${describe(task)}.`);
  }

  /**
   * Answers the open question, or with an object of responses several by their keys. A text answers a question of `ask`.
   *
   * @throws Error when no question, or more than one, is open for a text.
   */
  async answer(taskId: string, answer: string | { readonly [key: string]: InputResponse }): Promise<void> {
    const life = this.#lifeNow();
    const responses = typeof answer === "string" ? await this.#answerTo(taskId, answer) : answer;
    await life.live(life.tasks.lifecycle.updateTask(taskId, responses, await this.#whose(life)));
  }

  /** Asks for a cancel, as `tasks/cancel` does. */
  async cancel(taskId: string): Promise<void> {
    const life = this.#lifeNow();
    await life.live(life.tasks.lifecycle.cancelTask(taskId, await this.#whose(life)));
  }

  /** The inline budget of a call passes on the clock, unless the answer comes at once. */
  async #passBudget<Answer>(serving: Promise<Answer>, budgetMs: number): Promise<Answer> {
    let answered = false;
    const note = (): void => {
      answered = true;
    };
    serving.then(note, note);
    await this.#clock.advance(0);
    if (!answered) await this.#clock.advance(budgetMs);
    return serving;
  }

  async #answerTo(taskId: string, answer: string): Promise<{ readonly [key: string]: InputResponse }> {
    const task = await this.get(taskId);
    const keys = task.status === "input_required" ? Object.keys(task.inputRequests) : [];
    const [key] = keys;
    if (key === undefined || keys.length > 1)
      throw new Error(`Task ${taskId} has ${keys.length} open questions; answer them by their keys.`);
    return { [key]: { action: "accept", content: { answer } } };
  }

  /** Until the task differs from what was seen. The time that is waited is the test's own, not the clock's. */
  async #wait(life: Life, seen: DetailedTask, deadline: AbortSignal): Promise<DetailedTask> {
    const signal = AbortSignal.any([deadline, life.end]);
    const options = { ...(await this.#whose(life)), seen, signal, timeoutMs: longestWaitMs };
    return life.live(life.tasks.lifecycle.waitForChange(seen.taskId, options));
  }

  async #whose(life: Life): Promise<{ readonly scope: string | undefined }> {
    return { scope: await life.resolveScope(this.#request({})) };
  }

  #request(meta: JsonObject): RequestContext {
    const { authInfo } = this.#options;
    return { transport: "memory", meta, ...(authInfo === undefined ? {} : { authInfo }) };
  }

  #toCall(life: Life, rawArguments: JsonObject, meta: JsonObject): ToolCall {
    const { declaresTasks = true, capabilities = { elicitation: { form: {}, url: {} } } } = this.#options;
    return {
      request: this.#request(meta),
      client: { era: "2026-07-28", capabilities },
      declaresTasks,
      modern: true,
      rawArguments,
      signal: life.end,
      malformedKeys: [],
    };
  }
}

async function parseArguments(
  tool: TaskTool,
  args: JsonObject,
): Promise<{ readonly args: unknown } | { readonly result: JsonObject }> {
  const { inputSchema } = tool.config;
  if (inputSchema === undefined) return { args: {} };
  const parsed = await toStandardSchema("inputSchema", inputSchema)["~standard"].validate(args);
  if (parsed.issues === undefined) return { args: parsed.value };
  const text = `Invalid arguments for ${tool.name}: ${describeIssues(parsed.issues)}`;
  return { result: { content: [{ type: "text", text }], isError: true } };
}

function describe(task: DetailedTask | undefined): string {
  if (task === undefined) return "unknown";
  return task.status === "failed" ? `failed: ${JSON.stringify(task.error)}` : task.status;
}
