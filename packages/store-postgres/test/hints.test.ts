import { TaskLifecycle } from "@longjobs/core";
import { Client } from "pg";
import { expect, it, onTestFinished } from "vitest";
import type { PostgresListenClient, PostgresNotification } from "../src/index.ts";
import { hintKey, packHints, readHints } from "../src/hints/hint-payload.ts";
import { ChangingPool } from "./support/changing-pool.ts";
import { freshStore } from "./support/fresh-schema.ts";
import { bigResult, record } from "./support/records.ts";
import { listenClient } from "./support/under-test.ts";
import { waitUntil } from "./support/wait-until.ts";
import { postgresUrl, withPostgres } from "./support/with-postgres.ts";

/** So long that no look comes in time: what is noticed was heard. */
const never = 3_600_000;

it("payloads hold any number of ids, each once, in less than 200 bytes (P49)", () => {
  const ids = [
    ...Array.from({ length: 50 }, () => crypto.randomUUID()),
    "",
    "x".repeat(5_000),
    "ü".repeat(70),
    "line\nbreak",
    "\uD800",
  ];
  const payloads = packHints("origin", new Set(ids.map(hintKey)));
  expect(payloads.every((payload) => Buffer.byteLength(payload) < 200)).toBe(true);
  expect(payloads.every((payload) => readHints(payload).origin === "origin")).toBe(true);
  expect(payloads.flatMap((payload) => readHints(payload).keys)).toEqual(ids.map(hintKey));
  expect(packHints("origin", [])).toEqual(["origin"]);
});

withPostgres("notifications", () => {
  it("say which tasks changed and nothing of them, in less than 200 bytes, after the commit (P49)", async () => {
    const { store, schema, sql } = await freshStore({ listen: listenClient });
    const heard: string[] = [];
    const versionsThen: Promise<unknown>[] = [];
    const client = await rawListener(schema, ({ payload = "" }) => {
      heard.push(payload);
      if (payload.includes("\n")) versionsThen.push(sql("SELECT version FROM tasks WHERE task_id = 'big'"));
    });
    await store.create(record("big", { statusMessage: "secret", result: bigResult(5_000_000) }));
    await waitUntil(() => heard.some((payload) => payload.includes("\nbig")), "the create is told");
    await store.update("big", { data: bigResult(2_000_000), statusMessage: "secret" }, 1);
    await store.create(record("x".repeat(1_500)));
    await waitUntil(() => heard.some((payload) => payload.includes("\n#")), "the long id is told");
    await client.end();
    expect(heard.every((payload) => Buffer.byteLength(payload) < 200)).toBe(true);
    expect(heard.join()).not.toContain("secret");
    expect((await Promise.all(versionsThen)).every((rows) => (rows as unknown[]).length === 1)).toBe(true);
  });

  it("of many changes at once are few", async () => {
    const { store, schema } = await freshStore({ listen: listenClient });
    const heard: string[] = [];
    const client = await rawListener(schema, ({ payload = "" }) => heard.push(payload));
    const ids = Array.from({ length: 200 }, (_, index) => `task-${index}`);
    await Promise.all(ids.map((taskId) => store.create(record(taskId))));
    await Promise.all(ids.map((taskId) => store.update(taskId, { progress: { done: 1 } }, 1)));
    const told = (): Set<string> => new Set(heard.flatMap((payload) => readHints(payload).keys));
    await waitUntil(() => told().size === 200, "all changes are told");
    await client.end();
    expect(heard.length).toBeLessThan(100);
  });

  it("reach a watch in another process at once, without a look", async () => {
    const { store, another } = await freshStore({ listen: listenClient, watchPollMs: never, echoMs: never });
    const second = another();
    const longId = "y".repeat(1_500);
    for (const taskId of ["task-1", longId]) {
      await store.create(record(taskId));
      let hints = 0;
      const end = await second.watch(taskId, () => (hints += 1));
      await store.update(taskId, { progress: { done: 1 } }, 1);
      await waitUntil(() => hints > 0, "the watch hears of the update");
      await end();
      const before = hints;
      await store.update(taskId, { progress: { done: 2 } }, 2);
      const witness = await second.watch(taskId, () => undefined);
      await witness();
      expect(hints).toBe(before);
    }
  });

  it.each([
    ["with", { listen: listenClient }],
    ["without", {}],
  ])(
    "%s them, a watch tells what others did between a write of its own store and its beginning",
    async (_name, options) => {
      const { store, another } = await freshStore({ ...options, watchPollMs: never, echoMs: never });
      const second = another();
      await store.create(record("task-1"));
      await second.update("task-1", { cancelRequestedAt: "2026-01-02T03:04:05.678Z" }, 1);
      let hints = 0;
      await store.watch("task-1", () => (hints += 1));
      await waitUntil(() => hints > 0, "the watch tells");
    },
  );

  it("are off by default: no LISTEN, no NOTIFY, and a look finds the change", async () => {
    const { store, schema, another } = await freshStore({ watchPollMs: 50 });
    const heard: PostgresNotification[] = [];
    const client = await rawListener(schema, (message) => heard.push(message));
    const second = another();
    await store.create(record("task-1"));
    let hints = 0;
    await second.watch("task-1", () => (hints += 1));
    await store.update("task-1", { progress: { done: 1 } }, 1);
    await waitUntil(() => hints > 0, "the look finds the update");
    await client.query("SELECT 1");
    await client.end();
    expect(heard).toEqual([]);
  });

  it.each<[string, (deliver: () => void, message: PostgresNotification) => void]>([
    ["lost", () => undefined],
    ["delayed", (deliver) => void setTimeout(deliver, 600)],
    [
      "doubled",
      (deliver) => {
        deliver();
        deliver();
      },
    ],
    ["about other tasks", () => undefined],
  ])("that are %s end every wait within the poll floor (P48)", async (fault, pass) => {
    const listen = (): PostgresListenClient => {
      const client = listenClient();
      const on = client.on.bind(client) as (event: string, listener: (message: never) => void) => unknown;
      client.on = ((event: string, listener: (message: PostgresNotification) => void) => {
        if (event !== "notification") return on(event, listener);
        return on(event, (message: PostgresNotification) => {
          const { keys, origin } = readHints(message.payload ?? "");
          const changed =
            fault === "about other tasks" ? `${origin}\n${keys.map(() => "other").join("\n")}` : "";
          // Echoes pass: the listener believes that it hears everything.
          if (keys.length === 0) listener(message);
          else if (changed !== "") listener({ ...message, payload: changed });
          else pass(() => listener(message), message);
        });
      }) as never;
      return client;
    };
    const { store, another } = await freshStore({ listen, watchPollMs: 100, echoMs: 300 });
    const here = new TaskLifecycle({ store, waitPollMs: 200 });
    const there = new TaskLifecycle({ store: another(), waitPollMs: 200 });
    onTestFinished(async () => void (await Promise.all([here.close(), there.close()])));
    for (let round = 0; round < 3; round += 1) {
      const { taskId } = await here.createTask();
      const waiting = there.waitForChange(taskId, { timeoutMs: 20_000 });
      await here.handle(taskId).complete({ content: [] });
      expect((await waiting).status).toBe("completed");
    }
    // A worker only watches: the store looks for it.
    const { taskId } = await here.createTask();
    const worker = here.handle(taskId);
    await there.cancelTask(taskId);
    await waitUntil(() => worker.signal.aborted, "the cancel reaches the worker");
  });

  it("that a pooler swallows are noticed by their missing echo, and looks go on instead", async () => {
    const deaf = new ChangingPool(2);
    onTestFinished(() => deaf.end());
    let made = 0;
    const { store, another, errors } = await freshStore({
      watchPollMs: 50,
      echoMs: 100,
      deadlineMs: 5_000,
      listen: async () => {
        made += 1;
        const connection = await deaf.connect();
        return {
          connect: async () => undefined,
          query: (statement) => connection.query(statement),
          end: async () => connection.release(),
          on: () => undefined,
        };
      },
    });
    const second = another();
    await store.create(record("task-1"));
    let hints = 0;
    await second.watch("task-1", () => (hints += 1));
    await store.update("task-1", { progress: { done: 1 } }, 1);
    await waitUntil(() => hints > 0, "the look finds the update");
    await waitUntil(() => made > 2, "it tries again");
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatchObject({
      code: "store_unavailable",
      message: expect.stringContaining("transaction pooler"),
    });
  });

  it("that cannot be had do not keep a watch from beginning", async () => {
    const { store, errors } = await freshStore({
      listen: () => new Client({ host: "127.0.0.1", port: 1 }),
      watchPollMs: 50,
    });
    await store.create(record("task-1"));
    let hints = 0;
    const end = await store.watch("task-1", () => (hints += 1));
    await store.update("task-1", { progress: { done: 1 } }, 1);
    expect(hints).toBe(1);
    await end();
    expect(errors).toHaveLength(1);
    await store.close();
  });
});

async function rawListener(
  schema: string,
  onMessage: (message: PostgresNotification) => void,
): Promise<Client> {
  const client = new Client({ connectionString: postgresUrl });
  await client.connect();
  client.on("notification", onMessage);
  await client.query(`LISTEN "longjobs:${schema}"`);
  return client;
}
