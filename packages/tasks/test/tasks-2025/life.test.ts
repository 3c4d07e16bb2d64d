import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { CallToolResultSchema } from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, test, vi } from "vitest";

import { callAsTask } from "../support/client-2025.ts";
import { untilUnwatched } from "../support/spy-store.ts";
import { startTasks } from "../support/started-tasks.ts";
import { gatedTool, greeter, text } from "../support/tools.ts";
import { gate, nextTurn } from "../support/turns.ts";
import { allRoads, openV1Door, type Road } from "../support/v1-door.ts";

/** Ends the session as a client does that is shut down. */
async function endSession(client: Client): Promise<void> {
  if (client.transport instanceof StreamableHTTPClientTransport) await client.transport.terminateSession();
  await client.close();
}

describe.each(allRoads)("over %s", (road) => {
  test("P12: after the handle neither the end of the session nor a broken connection ends the work", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work");
    const first = await openV1Door(tasks, { road });
    const { taskId } = await callAsTask(first.client, "work");
    const started = await first.client.callTool({ name: "work" });
    const { taskId: job } = started.structuredContent as { readonly taskId: string };
    first.breakConnections();
    await endSession(first.client).catch(() => undefined);
    await nextTurn();
    expect(tool.runs.map(({ signal }) => signal.aborted)).toEqual([false, false]);
    tool.gate.open();
    const { client: later } = await openV1Door(tasks, { road });
    expect(await later.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)).toMatchObject(
      text("done"),
    );
    const args = { taskId: job, waitSeconds: 5 };
    expect(await later.callTool({ name: "durable_task_get", arguments: args })).toMatchObject(text("done"));
  });

  test("P12: before anything was sent the end of the session ends it: nobody could reach the work", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { inlineBudgetMs: 60_000 });
    const { client } = await openV1Door(tasks, { road });
    const calling = client.callTool({ name: "work" });
    await vi.waitFor(() => expect(tool.runs).toHaveLength(1));
    await endSession(client);
    await expect(calling).rejects.toThrow();
    await vi.waitFor(() => expect(tool.runs[0]?.signal.aborted).toBe(true));
    expect(tool.runs[0]?.signal.reason).toMatchObject({ code: "request_cancelled" });
  });

  test("P69: a client that gives up a wait with the tool ends the wait, and not the work", async () => {
    const { tasks, store } = startTasks({ waitPollMs: 5 });
    const tool = gatedTool(tasks, "work");
    const { client } = await openV1Door(tasks, { road });
    const started = await client.callTool({ name: "work" });
    const { taskId } = started.structuredContent as { readonly taskId: string };
    const controller = new AbortController();
    const args = { taskId, waitSeconds: 25 };
    const call = client.callTool({ name: "durable_task_get", arguments: args }, undefined, {
      signal: controller.signal,
    });
    const before = store.calls.length;
    await vi.waitFor(() => expect(store.calls.length).toBeGreaterThan(before + 5));
    controller.abort("enough");
    await expect(call).rejects.toThrow();
    // Without sessions a cancelled call is only told by its connection.
    if (road === "stateless" || road === "v2 http") await client.close();
    await untilUnwatched(store);
    expect(tool.runs[0]?.signal.aborted).toBe(false);
    tool.gate.open();
    await vi.waitFor(async () =>
      expect(await store.inner.get(taskId)).toMatchObject({ status: "completed" }),
    );
  });

  test("P05: a call counts for itself: only the one that has task becomes one", async () => {
    const { tasks } = startTasks();
    const tool = gatedTool(tasks, "work", { fallback: "wait" });
    const { client } = await openV1Door(tasks, { road });
    await callAsTask(client, "work");
    const plain = client.callTool({ name: "work" });
    await vi.waitFor(() => expect(tool.runs).toHaveLength(2));
    tool.gate.open();
    expect(await plain).toEqual(text("done"));
  });
});

test.each<Road>(["memory", "v2 memory"])(
  "P29 over %s: a person who takes 54 minutes to answer trips nothing",
  async (road) => {
    const { tasks } = startTasks({ retentionMs: 60_000, leaseMs: 1_000, waitPollMs: 10_000 });
    greeter(tasks);
    const asked = gate();
    const thought = gate();
    const { client } = await openV1Door(tasks, {
      road,
      answer: async () => {
        asked.open();
        await thought.opened;
        return { action: "accept", content: { name: "Ada" } };
      },
    });
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"],
    });
    const { taskId } = await callAsTask(client, "greet");
    const options = { timeout: 2 ** 31 - 1 };
    const result = client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema, options);
    await asked.opened;
    await vi.advanceTimersByTimeAsync(54 * 60_000);
    expect(await client.experimental.tasks.getTask(taskId)).toMatchObject({ status: "input_required" });
    thought.open();
    expect(JSON.stringify((await result).content)).toContain("Ada");
  },
);
