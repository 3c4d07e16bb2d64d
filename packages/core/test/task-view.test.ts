import { describe, expect, test } from "vitest";

import { toDetailedTask, toTask2025, toTaskView, type TaskStatus } from "../src/index.ts";
import { bareRecord, fullRecord } from "./support/records.ts";

const handleFields = [
  "createdAt",
  "lastUpdatedAt",
  "pollIntervalMs",
  "status",
  "statusMessage",
  "taskId",
  "ttlMs",
];
const payloadFields: { readonly [Status in TaskStatus]: readonly string[] } = {
  working: [],
  input_required: ["inputRequests"],
  completed: ["result"],
  failed: ["error"],
  cancelled: [],
};
const statuses = Object.keys(payloadFields) as TaskStatus[];

describe("no internal field reaches the wire (P06)", () => {
  test.each(statuses)(
    "the handle of a %s record with every field set has the task fields alone",
    (status) => {
      expect(Object.keys(toTaskView(fullRecord({ status }))).toSorted()).toEqual(handleFields);
    },
  );

  test.each(statuses)("the detailed task of a %s record adds the payload of its status alone", (status) => {
    const keys = Object.keys(toDetailedTask(fullRecord({ status }))).toSorted();
    expect(keys).toEqual([...handleFields, ...payloadFields[status]].toSorted());
  });

  test("a record with more fields than we know gives away none of them", () => {
    const record = { ...fullRecord({ status: "working" }), later: "secret" };
    expect(Object.keys(toDetailedTask(record)).toSorted()).toEqual(handleFields);
    expect(JSON.stringify(toDetailedTask(record))).not.toMatch(/secret|token|owner|tenant/);
  });
});

test("optional fields that are absent stay absent, and ttlMs is always there (P06)", () => {
  const required = ["createdAt", "lastUpdatedAt", "status", "taskId", "ttlMs"];
  expect(Object.keys(toTaskView(bareRecord())).toSorted()).toEqual(required);
  expect(toTaskView(bareRecord()).ttlMs).toBeNull();
});

test("only open questions are shown, each as method and params, whatever their keys look like", () => {
  const open = { fingerprint: "f", request: { method: "roots/list" }, state: "open", attempt: 1 } as const;
  const inputs = JSON.parse(
    JSON.stringify({ ...fullRecord().inputs, "7": open, PROTO: open }).replace("PROTO", "__proto__"),
  ) as ReturnType<typeof fullRecord>["inputs"];
  const task = toDetailedTask(bareRecord({ status: "input_required", inputs }));
  expect(task).toHaveProperty("inputRequests");
  const { inputRequests } = task as { inputRequests: object };
  expect(Object.keys(inputRequests).toSorted()).toEqual(["7", "__proto__", "asked"]);
  expect(Object.values(inputRequests)).toEqual(Array.from({ length: 3 }, () => ({ method: "roots/list" })));
});

test("payloads are shared with the record, never copied: a poll of a big result costs nothing", () => {
  const record = fullRecord({ status: "completed" });
  expect((toDetailedTask(record) as { result: unknown }).result).toBe(record.result);
});

test("a record whose payload is missing is refused, not shown as half a state (P09)", () => {
  expect(() => toDetailedTask(bareRecord({ status: "completed" }))).toThrow(TypeError);
  expect(() => toDetailedTask(bareRecord({ status: "failed" }))).toThrow(TypeError);
});

describe("a task as revision 2025-11-25 shows it", () => {
  const fields2025 = [
    "createdAt",
    "lastUpdatedAt",
    "pollInterval",
    "status",
    "statusMessage",
    "taskId",
    "ttl",
  ];

  test.each(statuses)("a %s task with every field set has the fields of that revision alone", (status) => {
    const view = toTask2025(toDetailedTask(fullRecord({ status })));
    expect(Object.keys(view).toSorted()).toEqual(fields2025);
    expect(view.status).toBe(status);
  });

  test("a tool error is a failure, and its text the diagnosis", () => {
    const content = [
      { type: "text", text: "No such city" },
      { type: "image" },
      { type: "text", text: "x".repeat(600) },
    ];
    const told = toTask2025(
      toDetailedTask(bareRecord({ status: "completed", result: { content, isError: true } })),
    );
    expect(told.status).toBe("failed");
    expect(told.statusMessage).toMatch(/^No such city\nx+…$/);
    expect(told.statusMessage).toHaveLength(500);
    const silent = toTask2025(toDetailedTask(bareRecord({ status: "completed", result: { isError: true } })));
    expect(silent).toMatchObject({ status: "failed", statusMessage: "The tool reported an error." });
  });
});
