import { MemoryTaskStore } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { createTasks, type TasksOptions, type TaskToolConfig } from "../src/index.ts";
import { text } from "./support/tools.ts";

describe("createTasks checks its options at the call", () => {
  test.for([
    ["no store", { store: undefined }, /store must have the method create/],
    ["a store that is none", { store: {} }, /store must have the method create/],
    ["a scope that is text", { scope: "ada" }, /scope must be a function of the request, or null/],
    ["a scope that is true", { scope: true }, /scope must be a function/],
    ["a short secret", { requestStateSecret: "short" }, /at least 32 characters/],
    ["a secret that is no text", { requestStateSecret: 12_345 }, /must be a string/],
    ["a retention that is no number", { retentionMs: Number.NaN }, /retentionMs/],
    ["a lease of nothing", { leaseMs: 0 }, /leaseMs/],
    ["a polling interval with a fraction", { pollIntervalMs: 1.5 }, /pollIntervalMs/],
    ["push that is none", { push: true }, /push must be an object/],
    ["no task at all", { push: { maxTaskIds: 0 } }, /push.maxTaskIds must be a whole number from 1/],
    ["half a subscription", { push: { maxSubscriptions: 0.5 } }, /push.maxSubscriptions must be a whole/],
    [
      "a limit that is no number",
      { push: { maxSubscriptionsPerClient: "1" } },
      /push.maxSubscriptionsPerClient must be a number/,
    ],
    ["signs of life all the time", { push: { keepAliveMs: 0 } }, /push.keepAliveMs must be a whole number/],
    ["signs of life after a month", { push: { keepAliveMs: 2 ** 31 } }, /push.keepAliveMs must be a whole/],
    ["an onError that is no function", { onError: "log" }, /onError must be a function/],
  ] as const)("%s", ([, options, words]) => {
    const given = { store: new MemoryTaskStore(), ...options } as unknown as TasksOptions;
    expect(() => createTasks(given)).toThrow(words);
  });

  test("no options at all", () => {
    expect(() => createTasks(undefined as never)).toThrow(TypeError);
  });
});

describe("taskTool checks its configuration at the call, and registers nothing that is wrong", () => {
  test.for([
    ["taskSupport", { taskSupport: "always" }, /taskSupport of work must be one of: optional, required/],
    ["fallback", { fallback: "never" }, /fallback of work must be one of: tools, wait/],
    ["inlineBudgetMs below 0", { inlineBudgetMs: -1 }, /inlineBudgetMs of work must be between 0 and 60000/],
    ["inlineBudgetMs over a minute", { inlineBudgetMs: 60_001 }, /inlineBudgetMs of work must be between/],
    [
      "inlineBudgetMs that is no number",
      { inlineBudgetMs: "1s" },
      /inlineBudgetMs of work must be a whole number/,
    ],
    ["retentionMs of nothing", { retentionMs: 0 }, /retentionMs of work must be between/],
    [
      "pollIntervalMs with a fraction",
      { pollIntervalMs: 0.5 },
      /pollIntervalMs of work must be a whole number/,
    ],
    ["prepare that is no function", { prepare: "ask" }, /prepare of work must be a function/],
    ["a configuration that is none", undefined, /work needs a configuration/],
    ["a handler in its place", () => text("done"), /work needs a configuration/],
  ] as const)("%s", ([, config, words]) => {
    const tasks = createTasks({ store: new MemoryTaskStore() });
    expect(() => tasks.taskTool("work", config as unknown as TaskToolConfig, () => text("done"))).toThrow(
      words,
    );
    tasks.taskTool("work", {}, () => text("the name is still free"));
  });

  test("a name, a handler, and a name that is free", () => {
    const tasks = createTasks({ store: new MemoryTaskStore() });
    expect(() => tasks.taskTool("", {}, () => text("done"))).toThrow(/needs a name/);
    expect(() => tasks.taskTool("work", {}, undefined as never)).toThrow(/work needs a handler/);
    tasks.taskTool("work", {}, () => text("done"));
    expect(() => tasks.taskTool("work", {}, () => text("done"))).toThrow(/work is registered already/);
  });
});
