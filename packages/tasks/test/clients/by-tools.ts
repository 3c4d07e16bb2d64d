import type { Job, ScenarioClient, Settled } from "./scenario.ts";

/** A client as far as tools go: any client has this much. */
export interface ToolCaller extends Pick<ScenarioClient, "listTools" | "readResource" | "close"> {
  callTool(name: string, args: object, onProgress?: () => void): Promise<ToolReply>;
  /** False where a call shows no progress. */
  readonly showsProgress: boolean;
}

/** What a tool answers with. */
export interface ToolReply {
  readonly content?: unknown;
  readonly structuredContent?: unknown;
  readonly isError?: unknown;
}

interface TaskState {
  readonly taskId: string;
  readonly status: string;
  readonly statusMessage?: string;
  readonly questions?: readonly { readonly key: string; readonly prompt: string }[];
}

/** The texts of a reply. */
export function textOf({ content }: ToolReply): string {
  return (content as readonly { readonly text?: string }[]).map(({ text }) => text ?? "").join("\n");
}

/** Follows work with the three tools, as a model does. */
export function byTools(caller: ToolCaller, answer: (question: string) => string): ScenarioClient {
  const follow = (taskId: string): Job => new FollowedByTools(caller, taskId, answer);
  return {
    listTools: () => caller.listTools(),
    readResource: (uri) => caller.readResource(uri),
    close: () => caller.close(),
    call: async (name, args) => textOf(await caller.callTool(name, args)),
    start: async (name, args) => follow(stateOf(await caller.callTool(name, args)).taskId),
    resume: async (taskId) => follow(taskId),
  };
}

class FollowedByTools implements Job {
  readonly way = "tools";
  readonly reference: string;
  readonly #caller: ToolCaller;
  readonly #answer: (question: string) => string;
  #waiting: Promise<ToolReply> | undefined;

  constructor(caller: ToolCaller, taskId: string, answer: (question: string) => string) {
    this.#caller = caller;
    this.reference = taskId;
    this.#answer = answer;
  }

  readonly progress = async (): Promise<"notifications" | "status"> => {
    if (this.#caller.showsProgress) {
      await new Promise<void>((resolve) => {
        this.#waiting = this.#wait(resolve);
      });
      return "notifications";
    }
    const look = async (): Promise<TaskState> =>
      stateOf(await this.#caller.callTool("durable_task_get", { taskId: this.reference }));
    while ((await look()).statusMessage === undefined);
    return "status";
  };

  async settle(): Promise<Settled> {
    const asked: Settled["asked"][number][] = [];
    for (;;) {
      const reply = await (this.#waiting ?? this.#wait());
      this.#waiting = undefined;
      const { status, questions = [] } = stateOf(reply);
      if (status !== "working" && status !== "input_required") return { text: textOf(reply), asked };
      for (const { prompt } of questions) {
        asked.push("the model");
        const response = this.#answer(prompt);
        await this.#caller.callTool("durable_task_respond", { taskId: this.reference, response });
      }
    }
  }

  readonly cancel = async (): Promise<string> => {
    await this.#caller.callTool("durable_task_cancel", { taskId: this.reference });
    return stateOf(await this.#wait()).status;
  };

  #wait(onProgress?: () => void): Promise<ToolReply> {
    return this.#caller.callTool("durable_task_get", { taskId: this.reference, waitSeconds: 25 }, onProgress);
  }
}

function stateOf(reply: ToolReply): TaskState {
  const state = reply.structuredContent as TaskState | undefined;
  if (state?.taskId === undefined) throw new Error(`Not a task: ${JSON.stringify(reply)}`);
  return state;
}
