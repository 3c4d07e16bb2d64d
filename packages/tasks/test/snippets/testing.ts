import assert from "node:assert/strict";

import type { Tasks } from "@longjobs/tasks";
import { TaskHarness } from "@longjobs/tasks/testing";

// #region tool
export function registerGreeter(tasks: Tasks): void {
  tasks.taskTool("greet", { onInterrupted: "resume" }, async (_args, task) => {
    const name = await task.ask({ prompt: "Who?" });
    await task.saveCheckpoint({ name });
    return { content: [{ type: "text", text: `Hello, ${name}!` }] };
  });
}
// #endregion

// #region test
export async function greetsAfterACrash(): Promise<void> {
  await using harness = await TaskHarness.start({ register: registerGreeter });
  const client = harness.client();
  const { taskId = "" } = await client.call("greet");
  await client.until(taskId, "input_required");

  await harness.restart(); // the process dies, and another one begins
  await client.answer(taskId, "Ada");
  assert.deepEqual((await client.result(taskId))["content"], [{ type: "text", text: "Hello, Ada!" }]);
  assert.deepEqual(harness.errors, []);
}
// #endregion

// #region time
export async function isGivenUpInTime(): Promise<void> {
  const harness = await TaskHarness.start({
    register: (tasks) => tasks.taskTool("stuck", { maxRunMs: 60_000 }, () => new Promise(() => undefined)),
  });
  const client = harness.client();
  const { taskId = "" } = await client.call("stuck");
  await harness.advance(61_000);
  assert.equal((await client.get(taskId)).status, "failed");
  await harness.close();
}
// #endregion
