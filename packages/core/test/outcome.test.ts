import { describe, expect, test } from "vitest";

import { isProtocolError, LongJobsError, rejectedOutcome, toToolError } from "../src/index.ts";
import type { DetailedTask, TaskHandler } from "../src/index.ts";
import { defaultJsonLimits } from "../src/normalize-json.ts";
import { startEngine } from "./support/engine.ts";

/** Runs a handler as the work of a recorded task, and gives what a poll shows afterwards. */
async function finish(handler: TaskHandler): Promise<DetailedTask> {
  const { lifecycle } = startEngine();
  const { taskId } = await lifecycle.createTask();
  await lifecycle.run(lifecycle.handle(taskId), handler);
  return lifecycle.getTask(taskId);
}

function rejectWith(error: unknown): TaskHandler {
  return async () => {
    // oxlint-disable-next-line typescript/only-throw-error -- the point: anything can be thrown
    throw error;
  };
}

const cycle: Record<string, unknown> = {};
cycle["self"] = cycle;

class RpcError extends Error {
  readonly code: number;
  readonly data: unknown;
  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

describe("a protocol error fails the task with its code, message and data (P10)", () => {
  test("as it is", async () => {
    const task = await finish(rejectWith(new RpcError(-32_602, "No such page", { page: 7 })));
    expect(task).toMatchObject({
      status: "failed",
      statusMessage: "No such page",
      error: { code: -32_602, message: "No such page", data: { page: 7 } },
    });
    expect(Object.keys(task)).not.toContain("result");
  });

  test("without data when it has none", async () => {
    const task = await finish(rejectWith(new RpcError(-32_007, "Seven")));
    expect(task).toMatchObject({ status: "failed" });
    expect((task as { error: object }).error).toStrictEqual({ code: -32_007, message: "Seven" });
  });

  test.each([
    ["a cycle", cycle],
    ["a BigInt", { n: 1n }],
    ["a throwing toJSON", { toJSON: () => Promise.reject(new Error("no")) }],
    ["a class instance", new Map()],
  ])("with a note in place of data that JSON cannot hold: %s (P11)", async (_name, data) => {
    const task = await finish(rejectWith(new RpcError(-32_000, "Broken", data)));
    expect(task).toMatchObject({ status: "failed", error: { code: -32_000, message: "Broken" } });
    expect((task as { error: { data: object } }).error.data).toHaveProperty("omitted");
  });

  test.each([
    [{ code: -32_004 }],
    [{ code: -32_005, message: 17 }],
    [Object.assign(new Error("x"), { code: -32_005, message: undefined })],
  ])("also when its message is no text: %j", async (error) => {
    const task = await finish(rejectWith(error));
    expect(task).toMatchObject({ status: "failed", error: { code: error.code } });
    expect(typeof (task as { error: { message: unknown } }).error.message).toBe("string");
  });

  test.each([
    [-32_769, false],
    [-32_768, true],
    [-32_000, true],
    [-31_999, false],
    [-1, false],
    [0, false],
    [1, false],
    [404, false],
    [32_000, false],
  ])("the code %d alone makes one: %s", (code, expected) => {
    expect(isProtocolError({ code })).toBe(expected);
    expect(isProtocolError(new RpcError(code, "x"))).toBe(expected);
  });

  test("an error class of an SDK makes one of any integer, and of nothing else", async () => {
    for (const name of ["McpError", "ProtocolError"]) {
      const error = Object.assign(new RpcError(4_001, "Refused"), { name });
      expect(await finish(rejectWith(error))).toMatchObject({ status: "failed", error: { code: 4_001 } });
      expect(isProtocolError(Object.assign(new Error("x"), { name, code: "4001" }))).toBe(false);
      expect(isProtocolError(Object.assign(new Error("x"), { name }))).toBe(false);
    }
  });

  test("a child process that failed is a failed tool: its exit code is no protocol code", async () => {
    const failed = Object.assign(new Error("Command failed: convert page.svg"), { code: 1, killed: false });
    expect(await finish(rejectWith(failed))).toMatchObject({
      status: "completed",
      result: { isError: true, content: [{ text: "Command failed: convert page.svg" }] },
    });
  });

  test("the legacy number of a DOMException is no protocol code: fetch aborts are tool errors", async () => {
    const timeout = new DOMException("The operation timed out", "TimeoutError");
    expect(timeout.code).toBe(23);
    expect(isProtocolError(timeout)).toBe(false);
    expect(await finish(rejectWith(timeout))).toMatchObject({
      status: "completed",
      result: { isError: true, content: [{ type: "text", text: "The operation timed out" }] },
    });
  });

  test("text and fractions are no protocol codes: errno and the like are tool errors", () => {
    for (const code of ["ENOENT", 1.5, Number.NaN, undefined, null])
      expect(isProtocolError({ code })).toBe(false);
    for (const value of [null, undefined, 5, "x"]) expect(isProtocolError(value)).toBe(false);
  });
});

describe("any other error completes the task with isError and the message, never the stack (P10)", () => {
  test.each<[string, unknown, string]>([
    ["an Error", new Error("Disk is full"), "Disk is full"],
    ["a system error", Object.assign(new Error("ENOENT: x"), { code: "ENOENT" }), "ENOENT: x"],
    ["a string", "plain text", "plain text"],
    ["undefined", undefined, "undefined"],
    ["an object with a message", { message: "from afar" }, "from afar"],
  ])("%s", async (_name, error, text) => {
    const task = await finish(rejectWith(error));
    expect(task).toMatchObject({ status: "completed" });
    const { result } = task as { result: object };
    expect(result).toStrictEqual({ content: [{ type: "text", text }], isError: true });
    expect(JSON.stringify(task)).not.toContain("outcome.test.ts");
  });

  test("a LongJobsError as the envelope that a model can repair", async () => {
    const error = new LongJobsError("page_missing", "There is no page 7.", {
      param: "page",
      recoveryHint: "Ask for pages 1 to 6.",
      partial: { pages: 6 },
      cause: new Error("internal"),
    });
    const { result } = (await finish(rejectWith(error))) as unknown as {
      result: { structuredContent: object };
    };
    const envelope = {
      code: "page_missing",
      message: "There is no page 7.",
      retryable: false,
      param: "page",
      recoveryHint: "Ask for pages 1 to 6.",
      partial: { pages: 6 },
    };
    expect(result).toMatchObject({ isError: true, structuredContent: envelope });
    expect(Object.keys(result.structuredContent).toSorted()).toEqual(Object.keys(envelope).toSorted());
  });

  test("a LongJobsError keeps its code and message when what it carries is no JSON (P11)", () => {
    const partial = { n: 1n } as unknown as { n: number };
    const result = toToolError(new LongJobsError("odd", "Odd.", { partial }), defaultJsonLimits);
    expect(result).toMatchObject({ isError: true, structuredContent: { code: "odd", message: "Odd." } });
  });

  test.each<[string, unknown]>([
    ["a revoked proxy", revokedProxy()],
    ["an error whose message throws", withThrowing("message")],
    ["an error whose code throws", withThrowing("code")],
    ["an error whose message is an object", Object.assign(new Error("x"), { message: { a: 1 } })],
    ["an object that cannot be made text", Object.create(null)],
  ])("%s ends the task too: no error object can leave it working (P11)", async (_name, error) => {
    const task = await finish(rejectWith(error));
    expect(task).toMatchObject({ status: "completed", result: { isError: true } });
    const { result } = task as unknown as { result: { content: [{ text: unknown }] } };
    expect(typeof result.content[0].text).toBe("string");
  });
});

function revokedProxy(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

function withThrowing(property: string): Error {
  return Object.defineProperty(new Error("x"), property, {
    get: () => {
      throw new Error("hostile");
    },
  });
}

describe("a result that cannot be stored ends the task all the same, and says why (P11)", () => {
  test.each<[string, unknown]>([
    ["a cycle", cycle],
    ["a BigInt", { total: 1n }],
    ["a throwing toJSON", withThrowing("toJSON")],
    ["nothing", undefined],
    ["an array", []],
    ["text", "done"],
    ["20,000 levels", JSON.parse(`${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`)],
  ])("%s", async (_name, result) => {
    const task = await finish(() => result as never);
    expect(task).toMatchObject({ status: "completed", result: { isError: true } });
    expect(JSON.stringify(task)).toMatch(/invalid_json|record_too_large/);
  });
});

describe("after an abort the reason decides, not the error", () => {
  const limits = defaultJsonLimits;
  const error = new RpcError(-32_000, "late");

  test.each(["cancelled", "request_cancelled"])("%s: the task is cancelled", (code) => {
    expect(rejectedOutcome(error, new LongJobsError(code, "stop"), limits)).toEqual({ status: "cancelled" });
  });

  test.each(["shutdown", "lease_lost", "expired", "store_unavailable"])("%s: nothing is written", (code) => {
    const reason = new LongJobsError(code, "stop");
    expect(rejectedOutcome(error, reason, limits)).toEqual({ status: "abandoned", reason });
  });

  test("deadline_exceeded: the task fails, and says so", () => {
    const reason = new LongJobsError("deadline_exceeded", "Took too long.", { retryable: true });
    expect(rejectedOutcome(error, reason, limits)).toEqual({
      status: "failed",
      error: {
        code: -32_603,
        message: "Took too long.",
        data: { code: "deadline_exceeded", message: "Took too long.", retryable: true },
      },
    });
  });
});
