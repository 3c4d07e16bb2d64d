import { describe, expect, test } from "vitest";

import { startEngine } from "./support/engine.ts";
import { codedErrorOf, codeOf } from "./support/errors.ts";

describe("a checkpoint", () => {
  test("is kept up to its limit, in bytes of JSON text, and refused beyond it: the last one stays", async () => {
    const { lifecycle, store } = startEngine({ maxCheckpointBytes: 10 });
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    await task.saveCheckpoint("12345678");
    const before = await store.get(taskId);
    for (const large of ["123456789", "\u00e4\u00e4\u00e4\u00e4\u00e4", [1, 2, 3, 4, 5, 6]]) {
      const error = await codedErrorOf(task.saveCheckpoint(large));
      expect(error).toMatchObject({ code: "record_too_large", param: "checkpoint", retryable: false });
      expect(error.recoveryHint).toContain("cursor");
    }
    expect(await store.get(taskId)).toBe(before);
    expect(task.checkpoint).toBe("12345678");
  });

  test("has 64 KiB by default, and never more than any value may have", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    const task = lifecycle.handle(taskId);
    await task.saveCheckpoint("x".repeat(65_534));
    expect(await codeOf(task.saveCheckpoint("x".repeat(65_535)))).toBe("record_too_large");
    const strict = startEngine({ jsonLimits: { maxBytes: 100 } });
    const small = await strict.lifecycle.createTask();
    expect(await codeOf(strict.lifecycle.handle(small.taskId).saveCheckpoint("x".repeat(200)))).toBe(
      "record_too_large",
    );
  });

  test("that JSON cannot hold is refused with the path", async () => {
    const { lifecycle } = startEngine();
    const { taskId } = await lifecycle.createTask();
    expect(await codeOf(lifecycle.handle(taskId).saveCheckpoint({ at: 1n } as never))).toBe("invalid_json");
  });
});
