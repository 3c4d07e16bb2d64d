import { setTimeout as delay } from "node:timers/promises";

import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";

import { textOf } from "./by-tools.ts";
import type { Job, ScenarioClient, Settled } from "./scenario.ts";

/** What the driver is told of its connection. */
export interface Connection {
  /** What the client's own elicitation handler was asked so far. */
  readonly asked: Settled["asked"][number][];
  readonly answer: (question: string) => string;
  /** True where progress of a task is sent: where a connection outlives the requests. */
  readonly showsProgress: boolean;
}

/** Follows work with `client.experimental.tasks` of SDK v1. */
export function by2025Tasks(plain: ScenarioClient, client: Client, connection: Connection): ScenarioClient {
  return {
    ...plain,
    start: async (name, args) => {
      const job = new TaskOf2025(client, connection);
      const options = { task: {}, onprogress: () => job.sawProgress() };
      const params = { name, arguments: { ...args } };
      for await (const message of client.experimental.tasks.callToolStream(params, undefined, options)) {
        if (message.type !== "taskCreated") throw new Error(`Not a task: ${JSON.stringify(message)}`);
        job.reference = message.task.taskId;
        return job;
      }
      throw new Error("The server sent no answer.");
    },
    resume: async (taskId) => {
      const job = new TaskOf2025(client, connection);
      job.reference = taskId;
      return job;
    },
  };
}

class TaskOf2025 implements Job {
  readonly way = "2025-11-25 task";
  reference = "";
  readonly #client: Client;
  readonly #connection: Connection;
  readonly #notified: Promise<void>;
  #isNotified = false;
  sawProgress = (): void => undefined;

  constructor(client: Client, connection: Connection) {
    this.#client = client;
    this.#connection = connection;
    this.#notified = new Promise((resolve) => {
      this.sawProgress = () => {
        this.#isNotified = true;
        resolve();
      };
    });
  }

  readonly progress = async (): Promise<"notifications" | "status"> => {
    const { showsProgress } = this.#connection;
    if (showsProgress) await this.#notified;
    while ((await this.#get()).statusMessage === undefined);
    if (this.#isNotified !== showsProgress) throw new Error("Progress came where none can be sent.");
    return showsProgress ? "notifications" : "status";
  };

  async settle(): Promise<Settled> {
    const { asked, answer } = this.#connection;
    for (;;) {
      const { status, statusMessage = "", pollInterval } = await this.#get();
      if (status === "working") await delay(pollInterval);
      else if (status !== "input_required" || !statusMessage.includes("durable_task_respond")) break;
      else {
        // A client that cannot be asked is told how a model answers.
        asked.push("the model");
        const response = answer(statusMessage);
        const args = { taskId: this.reference, response };
        await this.#client.callTool({ name: "durable_task_respond", arguments: args });
      }
    }
    const result = await this.#client.experimental.tasks.getTaskResult(this.reference, CallToolResultSchema);
    return { text: textOf(result), asked: asked.splice(0) };
  }

  readonly cancel = async (): Promise<string> =>
    (await this.#client.experimental.tasks.cancelTask(this.reference)).status;

  #get(): ReturnType<Client["experimental"]["tasks"]["getTask"]> {
    return this.#client.experimental.tasks.getTask(this.reference);
  }
}
