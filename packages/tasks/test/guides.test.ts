import { MemoryTaskStore } from "@longjobs/core";
import { Client } from "@modelcontextprotocol/client";
import { InMemoryTransport, McpServer } from "@modelcontextprotocol/server";
import { expect, test, vi } from "vitest";

import { createTasks } from "../src/index.ts";
import { TaskHarness } from "../src/testing.ts";
import { createNamedTasks, registerByFallback } from "./snippets/fallback.ts";
import { orderBook, registerOrderTool } from "./snippets/idempotency.ts";
import { registerCopyTools } from "./snippets/progress.ts";
import { registerTravelTools } from "./snippets/questions.ts";
import { registerPageTools } from "./snippets/repairable.ts";
import { closeOnSigterm, registerResumableTools } from "./snippets/resume.ts";
import { greetsAfterACrash, isGivenUpInTime } from "./snippets/testing.ts";
import { openEntry, start, until, words, type Entry } from "./support/entries.ts";
import { HttpDoor } from "./support/http-door.ts";
import { walk } from "./support/scripted-model.ts";
import { gate } from "./support/turns.ts";
import { startTasks } from "./support/started-tasks.ts";
import type { WireResult } from "./support/wire.ts";

/** The text of a reply as the pages show it. */
function shown(result: WireResult): string {
  return words(result).replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "1f0c…");
}

/** The questions page answers with these. */
function travel(question: string): string {
  if (question.includes("seat")) return "Window";
  if (question.includes("Who")) return "Ada";
  if (question.includes("city")) return "Rome";
  if (question.includes("month")) return "May";
  return "no";
}

test("the tools of the page on questions ask, and are answered", async () => {
  const { tasks } = startTasks();
  registerTravelTools(tasks);
  const client = await openEntry(tasks);
  const said = async (name: string, args: object): Promise<string> =>
    words((await walk(client, name, args, travel)).result);
  expect(await said("book_trip", { city: "Rome" })).toBe("Ada goes to Rome, window.");
  expect(await said("plan_trip", {})).toBe("Rome in May");
  expect(await said("remove_trip", {})).toBe("It stays.");
  const removing = await start(client, "remove_trip");
  await until(client, removing, "input_required");
  await client.call("durable_task_respond", { taskId: removing, action: "decline" });
  expect(words(await until(client, removing, "completed"))).toBe("It stays.");
});

test("the question, the answer and the refusal look as the pages show them", async () => {
  const { tasks } = startTasks();
  registerTravelTools(tasks);
  const client = await openEntry(tasks);
  const taskId = await start(client, "book_trip", { city: "Rome" });
  const asked = await client.call("durable_task_get", { taskId, waitSeconds: 25 });
  expect(shown(asked)).toBe(
    `Task 1f0c… waits for an answer, and goes on only then:
- Which seat to Rome? Allowed answers: "aisle", "window".
Answer with durable_task_respond {"taskId":"1f0c…","response":"…"}. If the user does not want to answer, pass "action":"decline" instead.`,
  );
  const refused = await client.call("durable_task_respond", { taskId, response: "roof" });
  expect({ ...(JSON.parse(shown(refused)) as object), param: "ask-…" }).toEqual({
    code: "invalid_input_response",
    message: "The answer was not accepted: data/answer must be equal to one of the allowed values",
    retryable: false,
    param: "ask-…",
    recoveryHint:
      'Give an answer that fits; the question is still open: Which seat to Rome? Allowed answers: "aisle", "window".',
  });
  await client.call("durable_task_cancel", { taskId });
});

test("a form of several fields is shown with its fields", async () => {
  const { tasks } = startTasks();
  registerTravelTools(tasks);
  const client = await openEntry(tasks);
  const taskId = await start(client, "rate_trip");
  const asked = await client.call("durable_task_get", { taskId, waitSeconds: 25 });
  expect(shown(asked)).toContain("- How was it? Fields: stars (integer), words (string, optional).");
  await client.call("durable_task_respond", { taskId, response: { stars: "5", words: "sunny" } });
  expect(words(await until(client, taskId, "completed"))).toBe('{"stars":5,"words":"sunny"}');
});

test("the tool of the page on progress says how far it is", async () => {
  const { tasks } = startTasks();
  const copied: string[] = [];
  let go = (): void => undefined;
  registerCopyTools(tasks, async (file) => {
    copied.push(file);
    if (file === "c.txt")
      await new Promise<void>((resolve) => {
        go = resolve;
      });
  });
  const client = await openEntry(tasks);
  const taskId = await start(client, "copy", { files: ["a.txt", "b.txt", "c.txt"] });
  const reply = await client.call("durable_task_get", { taskId });
  expect(shown(reply)).toBe(
    'Task 1f0c… is still working. It says: "Copying c.txt: 2 of 3 (66 %)". It is NOT finished. ' +
      'Call durable_task_get with {"taskId":"1f0c…","waitSeconds":25} to wait for the result.',
  );
  expect(reply.structuredContent).toMatchObject({
    statusMessage: "Copying c.txt: 2 of 3 (66 %)",
    progress: { done: 2, total: 3 },
  });
  go();
  expect(words(await until(client, taskId, "completed"))).toBe("3 files copied.");
  expect(copied).toEqual(["a.txt", "b.txt", "c.txt"]);
});

test("the tools of the page on fallbacks answer a client without tasks as its table says", async () => {
  const { tasks } = startTasks();
  let done = (_picture: string): void => undefined;
  registerByFallback(tasks, () => new Promise((resolve) => (done = resolve)));
  const client = await openEntry(tasks);
  const started = await client.call("render");
  expect(shown(started)).toBe(
    "This takes longer than one call: it goes on as task 1f0c…, and it is NOT finished yet. " +
      'Call durable_task_get with {"taskId":"1f0c…","waitSeconds":25} to wait for the result. ' +
      "Do not call this tool again for the same request.",
  );
  done("a picture");
  const now = client.call("render_now");
  const first = done;
  await expect.poll(() => done !== first).toBe(true);
  done("a picture");
  expect(words(await now)).toBe("a picture");
  const { error } = await client.send("tools/call", { name: "render_later" });
  expect(error?.code).toBe(-32_021);
});

test("names and descriptions are as the page sets them", async () => {
  await using tasks = createNamedTasks(new MemoryTaskStore());
  tasks.taskTool("render", {}, () => ({}));
  const { result } = (await new HttpDoor(tasks).send("tools/list", {}, { declare: false })).message;
  const { tools } = result as { tools: { name: string; description?: string }[] };
  expect(tools.map(({ name }) => name)).toEqual([
    "render",
    "render_job_get",
    "render_job_respond",
    "render_job_cancel",
  ]);
  expect(tools[3]?.description).toMatch(/^Stops a rendering/);
});

test("the error of the page on errors reaches the model as it was thrown", async () => {
  const { tasks } = startTasks();
  registerPageTools(tasks, ["one", "two"]);
  const client: Entry = await openEntry(tasks);
  expect(await client.call("read_page", { page: 3 })).toMatchObject({
    isError: true,
    structuredContent: {
      code: "no_such_page",
      message: "There is no page 3.",
      retryable: false,
      param: "page",
      recoveryHint: "Ask for a page from 1 to 2.",
      partial: { pages: 2 },
    },
  });
});

test("a model repeats a call as the page on idempotency shows it, and the book is ordered once", async () => {
  const { tasks } = startTasks();
  const delivered = gate();
  const orders: string[] = [];
  registerOrderTool(tasks, async (book) => {
    orders.push(book);
    await delivered.opened;
    return orders.length;
  });
  const client = await openEntry(tasks);
  const said = async (args: object): Promise<string> =>
    words(await client.call("order_book", args)).replaceAll(/[0-9a-f]{64}/g, "5f2a…");
  const key = { idempotencyKey: "order-1" };
  expect(await said({ book: "Emma", ...key })).toBe(
    "This takes longer than one call: it goes on as task 5f2a…, and it is NOT finished yet. " +
      'Call durable_task_get with {"taskId":"5f2a…","waitSeconds":25} to wait for the result. ' +
      "Do not call this tool again for the same request.",
  );
  expect(await said({ book: "Emma", ...key })).toBe(
    "An earlier call with this idempotency key started it. Task 5f2a… is still working. It is NOT finished. " +
      'Call durable_task_get with {"taskId":"5f2a…","waitSeconds":25} to wait for the result.',
  );
  expect(await said({ book: "Persuasion", ...key })).toBe(
    '{"code":"idempotency_conflict","message":"The idempotencyKey of this call was used before, with other arguments.",' +
      '"retryable":false,"param":"idempotencyKey","recoveryHint":"Pass a new idempotencyKey for these arguments, or the ' +
      'arguments of the first call to get its answer. Nothing was started."}',
  );
  delivered.open();
  await expect.poll(() => said({ book: "Emma", ...key })).toBe("Order 1: Emma.");
  expect(orders).toEqual(["Emma"]);
});

test("the program of the page on idempotency repeats its call with the same key, and the book is ordered once", async () => {
  const { tasks } = startTasks();
  const keys: string[] = [];
  registerOrderTool(tasks, async (_book, key) => keys.push(key));
  const [near, far] = InMemoryTransport.createLinkedPair();
  const server = tasks.attach(new McpServer({ name: "shop", version: "1.0.0" }));
  await server.connect(far);
  // The first two answers are lost on their way.
  const send = far.send.bind(far);
  let lost = 0;
  far.send = async (message, options) => {
    if (JSON.stringify(message).includes("Order") && (lost += 1) <= 2)
      return send({
        jsonrpc: "2.0",
        id: (message as { id: number }).id,
        error: { code: -1, message: "lost" },
      });
    return send(message, options);
  };
  const client = new Client({ name: "reader", version: "1.0.0" });
  await client.connect(near);
  const result = await orderBook(client, "Emma");
  expect(words(result as WireResult)).toBe("Order 1: Emma.");
  expect(lost).toBe(3);
  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{64}$/)]);
  await client.close();
});

test("the tools of the page on resuming go on after a crash, and do their effects once", async () => {
  const reads: number[] = [];
  const outbox = new Map<string, string>();
  let dies = true;
  const post = {
    send: async (_invoice: string, { key }: { readonly key: string }): Promise<string> => {
      outbox.set(key, `no. ${outbox.size + 1}`);
      // The invoice is out, and the process ends before it can say so.
      return dies ? new Promise<never>(() => undefined) : (outbox.get(key) ?? "");
    },
    find: async (key: string): Promise<string | undefined> => outbox.get(key),
  };
  const read = async (page: number): Promise<string> => {
    reads.push(page);
    return page === 3 && dies ? new Promise<never>(() => undefined) : "two words";
  };
  await using harness = await TaskHarness.start({
    register: (tasks) => registerResumableTools(tasks, read, post),
  });
  const client = harness.client();
  const { taskId: crawl = "" } = await client.call("crawl", { pages: 4 });
  const { taskId: invoice = "" } = await client.call("send_invoice");
  await vi.waitFor(() => expect([reads.length, outbox.size]).toEqual([3, 1]));
  dies = false;
  await harness.restart();
  expect(JSON.stringify(await client.result(crawl))).toContain("4 pages, 8 words.");
  expect(reads).toEqual([1, 2, 3, 3, 4]);
  expect(JSON.stringify(await client.result(invoice))).toContain("Sent as no. 1.");
  expect(outbox.size).toBe(1);
  const { result } = await client.call("render");
  expect(JSON.stringify(result)).toContain("Rendered.");
});

test("the shutdown of the page on resuming closes the tasks, then the store", async () => {
  const store = new MemoryTaskStore();
  const tasks = createTasks({ store, scope: null });
  const { taskId } = await tasks.lifecycle.createTask();
  closeOnSigterm(tasks, store);
  process.emit("SIGTERM");
  await vi.waitFor(async () => expect(store.get(taskId)).rejects.toMatchObject({ code: "store_closed" }));
  await expect(tasks.lifecycle.createTask()).rejects.toMatchObject({ code: "store_closed" });
});

test("the tests of the page on testing pass", async () => {
  await greetsAfterACrash();
  await isGivenUpInTime();
});
