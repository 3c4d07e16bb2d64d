import type { InputRequest } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { HttpDoor } from "./support/http-door.ts";
import { startTasks } from "./support/started-tasks.ts";
import { askName, form } from "./support/tools.ts";

const url: InputRequest = {
  method: "elicitation/create",
  params: { mode: "url", message: "Sign in", url: "https://example.com/sign-in" },
};
const sampling: InputRequest = {
  method: "sampling/createMessage",
  params: { messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 10 },
};
const roots: InputRequest = { method: "roots/list" };

function asker(request: InputRequest, config: { readonly fallback?: "tools" | "wait" } = {}) {
  const started = startTasks();
  started.tasks.taskTool("ask", config, async (_args, task) => {
    const { it } = await task.requestInput({ it: request });
    return { content: [], structuredContent: { it } };
  });
  return { ...started, http: new HttpDoor(started.tasks) };
}

describe("a request gets no question of a kind that it did not declare", () => {
  test.for([
    ["a form", askName, {}, "elicitation.form"],
    ["a form, to a client that opens pages only", askName, { elicitation: { url: {} } }, "elicitation.form"],
    ["a page", url, { elicitation: { form: {} } }, "elicitation.url"],
    ["a page, to a client of plain elicitation", url, { elicitation: {} }, "elicitation.url"],
    ["sampling", sampling, { elicitation: {} }, "sampling"],
    ["roots", roots, { sampling: {} }, "roots"],
  ] as const)("%s", async ([, request, capabilities, param]) => {
    const { http, store } = asker(request);
    const result = await http.callTool("ask", {}, { capabilities });
    expect(result).toMatchObject({
      isError: true,
      structuredContent: { code: "input_not_supported", param },
    });
    expect(store.calls, "nothing was recorded for it").toEqual([]);
  });

  test("no kind at all, to a client that would get no handle", async () => {
    const { http } = asker(askName, { fallback: "wait" });
    const result = await http.callTool("ask", {}, { declare: false });
    expect(result).toMatchObject({ isError: true, structuredContent: { code: "input_not_supported" } });
  });

  test("what the call declared counts, not what a later poll declares", async () => {
    const { http } = asker(askName);
    const taskId = await http.startTask("ask", {}, { capabilities: { elicitation: {} } });
    await http.until(taskId, "input_required", { capabilities: {} });
    await http.update(taskId, { it: { action: "decline" } }, { capabilities: {} });
    await http.until(taskId, "completed", { capabilities: {} });
  });
});

describe("each kind is asked and answered", () => {
  test.for([
    ["a page without elicitationId", url, { elicitation: { url: {} } }, { action: "accept" }],
    [
      "a form for a client of plain elicitation",
      askName,
      { elicitation: {} },
      { action: "accept", content: { name: "Ada" } },
    ],
    [
      "sampling",
      sampling,
      { sampling: {} },
      { role: "assistant", model: "m", content: { type: "text", text: "Hello" } },
    ],
    ["roots", roots, { roots: {} }, { roots: [{ uri: "file:///work" }] }],
  ] as const)("%s", async ([, request, capabilities, answer]) => {
    const { http } = asker(request);
    const taskId = await http.startTask("ask", {}, { capabilities });
    expect((await http.until(taskId, "input_required")).inputRequests).toEqual({ it: request });
    await http.update(taskId, { it: answer });
    const { result } = await http.until(taskId, "completed");
    expect(result?.structuredContent).toEqual({ it: answer });
  });

  test.for([
    ["sampling", sampling, { sampling: {} }, { role: "assistant" }],
    ["roots", roots, { roots: {} }, { roots: "all" }],
    ["sampling, answered like a form", sampling, { sampling: {} }, { action: "accept" }],
  ] as const)("a bad answer is asked for again: %s", async ([, request, capabilities, answer]) => {
    const { http } = asker(request);
    const taskId = await http.startTask("ask", {}, { capabilities });
    await http.until(taskId, "input_required");
    await http.update(taskId, { it: answer });
    const again = await http.get(taskId);
    expect(Object.keys(again.inputRequests ?? {})).toEqual([expect.stringMatching(/^it~/)]);
    await http.cancel(taskId);
    await http.until(taskId, "cancelled");
  });
});

test.for([
  [
    "titled choices",
    { type: "string", enum: ["a", "b"], enumNames: ["First", "Second"], title: "Letter" },
    "a",
  ],
  ["one of several", { type: "string", oneOf: [{ const: "a", title: "First" }], default: "a" }, "a"],
  [
    "some of several",
    { type: "array", items: { anyOf: [{ const: "a", title: "First" }] }, minItems: 1, maxItems: 2 },
    ["a"],
  ],
  ["a date", { type: "string", format: "date-time", description: "When" }, "2026-07-28T00:00:00Z"],
  ["an address", { type: "string", format: "uri", minLength: 3 }, "https://example.com"],
  ["a number with bounds", { type: "number", minimum: 0, maximum: 1 }, 0.5],
  ["a yes or no with a default", { type: "boolean", default: true }, false],
] as const)(
  "every kind of field that a form may have is asked and answered: %s",
  async ([, field, value]) => {
    const { http } = asker(form("?", { it: field }));
    const taskId = await http.startTask("ask");
    await http.until(taskId, "input_required");
    const answer = { action: "accept", content: { it: value } };
    await http.update(taskId, { it: answer });
    expect((await http.until(taskId, "completed")).result?.structuredContent).toEqual({ it: answer });
  },
);

test.for([
  ["an unknown method", { method: "tools/list" }],
  ["a form without a schema", { method: "elicitation/create", params: { mode: "form", message: "?" } }],
  [
    "a form whose schema cannot be compiled",
    {
      method: "elicitation/create",
      params: {
        mode: "form",
        message: "?",
        requestedSchema: { $schema: "https://example.com/unknown", type: "object", properties: {} },
      },
    },
  ],
  ["no method", {}],
] as const)("a question the protocol does not know is refused where it is asked: %s", async ([, request]) => {
  const { http, store } = asker(request as InputRequest);
  const result = await http.callTool("ask", {}, { capabilities: { elicitation: {} } });
  expect(result.isError).toBe(true);
  expect(result.content?.[0]?.text).toMatch(/The question it is not a valid request/);
  expect(store.calls).toEqual([]);
});
