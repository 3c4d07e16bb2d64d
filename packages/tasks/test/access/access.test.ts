import { expect, test } from "vitest";

import { expectGenerated, toTable } from "../support/generated-page.ts";
import { hostileIds } from "../support/hostile-ids.ts";
import { recordText, startTasks, takeErrors, type StartedTasks } from "../support/started-tasks.ts";
import { askName, text } from "../support/tools.ts";
import type { WireMessage } from "../support/wire.ts";
import { v1, v2Legacy, v2Modern, v2Push, type Caller, type OpenSession, type Session } from "./doors.ts";

/** One way to a task: what it sends, and through what. */
interface EntryPoint {
  readonly name: string;
  readonly client: string;
  readonly open: OpenSession;
  readonly send: (session: Session, taskId: unknown, caller: Caller) => Promise<WireMessage>;
  /** True for what waits for the end: it is asked about a task that has ended. */
  readonly waits: boolean;
}

const tools = ["durable_task_get", "durable_task_respond", "durable_task_cancel"];

function entryPoints(client: string, open: OpenSession, methods: readonly string[]): EntryPoint[] {
  return methods.map((name) => ({
    name,
    client,
    open,
    waits: name === "tasks/result",
    send: (session, taskId, caller) =>
      name.startsWith("tasks/")
        ? session.send(name, { taskId, inputResponses: { nobody: { action: "decline" } } }, caller)
        : session.send("tools/call", { name, arguments: { taskId, answers: { nobody: 1 } } }, caller),
  }));
}

/** Its acknowledgement names the tasks that are followed: one that names none has not reached any. */
function subscription(client: string, open: OpenSession): EntryPoint {
  return {
    name: "subscriptions/listen",
    client,
    open,
    waits: false,
    send: async (session, taskId, caller) => {
      const { params, ...told } = await session.send(
        "subscriptions/listen",
        { notifications: { taskIds: [taskId] } },
        caller,
      );
      if (params === undefined) return told;
      const { taskIds = [] } = params["notifications"] as { readonly taskIds?: readonly unknown[] };
      return { ...told, result: { isError: taskIds.length === 0, structuredContent: { taskIds } } };
    },
  };
}

const all: readonly EntryPoint[] = [
  ...entryPoints("2026-07-28 with tasks", v2Modern(true), ["tasks/get", "tasks/update", "tasks/cancel"]),
  subscription("2026-07-28 with tasks", v2Push),
  ...entryPoints("2026-07-28", v2Modern(false), tools),
  ...entryPoints("2025-11-25, SDK v2", v2Legacy, ["tasks/get", "tasks/result", "tasks/cancel", ...tools]),
  ...entryPoints("2025-11-25, SDK v1", v1, ["tasks/get", "tasks/result", "tasks/cancel", ...tools]),
];

function as(sub: string, iss = "https://id.example", clientId = "host"): Caller {
  return { auth: { clientId, extra: { iss, sub } } };
}

/** Each caller asks in the session that started the task, unless it is a new one. */
const callers: readonly (readonly [string, Caller, "same session" | "new session"])[] = [
  ["owner", as("ada"), "same session"],
  ["owner, new session", as("ada"), "new session"],
  ["other person, same session", as("eve"), "same session"],
  ["other issuer", as("ada", "https://other.example"), "new session"],
  ["other client", as("ada", "https://id.example", "other"), "new session"],
  ["sibling", as("ada/eve"), "new session"],
  ["nobody", {}, "same session"],
];

const unknown = "00000000-0000-4000-8000-000000000000";

/** A server whose tasks belong to people, as they do by default. Nothing but calls makes it look at its store. */
function startPersonal(): StartedTasks {
  const started = startTasks({ scope: undefined as never, waitPollMs: 60_000 });
  started.tasks.taskTool("ask", { inlineBudgetMs: 0 }, async (_args, task) => {
    await task.requestInput({ who: askName });
    return text("done");
  });
  started.tasks.taskTool("end", { inlineBudgetMs: 0 }, (_args, task) => text(String(task.scope)));
  return started;
}

/** Starts a task of Ada's that the entry point can be asked about, and gives its id. */
async function startFor({ waits }: EntryPoint, started: StartedTasks, session: Session, caller: Caller) {
  const before = started.store.calls.length;
  await session.send("tools/call", { name: waits ? "end" : "ask", arguments: {} }, caller);
  const created = started.store.calls.slice(before).find(({ method }) => method === "create");
  const taskId = created?.taskId ?? "";
  const status = waits ? "completed" : "input_required";
  await expect.poll(async () => (await started.store.inner.get(taskId))?.status).toBe(status);
  return taskId;
}

function plain({ result, error }: WireMessage, taskId: string): string {
  return JSON.stringify({ result, error }).replaceAll(taskId, "ID");
}

/** P31 and P35: what one caller sees of another's task, and how many looks at the store it costs. */
async function cellOf(
  entry: EntryPoint,
  caller: Caller,
  where: "same session" | "new session",
): Promise<string> {
  const started = startPersonal();
  const newSession = await entry.open(started.tasks);
  const first = await newSession();
  const taskId = await startFor(entry, started, first, as("ada"));
  const session = where === "same session" ? first : await newSession();
  const before = await recordText(started.store, taskId);
  const looks = started.store.calls.length;
  const missing = plain(await entry.send(session, unknown, caller), unknown);
  const looksForMissing = started.store.calls.length - looks;
  const reached = plain(await entry.send(session, taskId, caller), taskId);
  if (reached !== missing) return "yes";
  // Who may not see a task changes nothing of it, and is not answered later than for an unknown one.
  expect(await recordText(started.store, taskId)).toBe(before);
  expect(started.store.calls.length - looks).toBe(2 * looksForMissing);
  return reached.includes("createTasks({ scope") ? "refused" : "unknown";
}

/** P33: ids that no server gave. */
async function hostileCell(entry: EntryPoint): Promise<string> {
  const started = startPersonal();
  const session = await (await entry.open(started.tasks))();
  for (const [name, taskId] of hostileIds) {
    const message = await entry.send(session, taskId, as("ada"));
    const told = message.error?.code ?? message.result?.isError;
    expect([true, -32_602, -32_020], `${name}: ${JSON.stringify(message).slice(0, 300)}`).toContain(told);
  }
  expect(started.store.calls).toEqual([]);
  return "unread";
}

/** P34: many people at once on one server, each of whom asks about a task of theirs and about a neighbour's. */
async function crowdCell(entry: EntryPoint): Promise<string> {
  const started = startPersonal();
  const newSession = await entry.open(started.tasks);
  const people = Array.from({ length: 10 }, (_unused, n) => as(`person ${n}`));
  const sessions = await Promise.all([newSession(), newSession()]);
  const ids: string[] = [];
  for (const [n, person] of people.entries())
    ids.push(await startFor(entry, started, sessions[n % 2] as Session, person));
  const ask = async (n: number, of: number): Promise<string> => {
    const id = ids[of % ids.length] ?? "";
    return plain(await entry.send(sessions[n % 2] as Session, id, people[n] as Caller), id);
  };
  const missing = plain(await entry.send(sessions[0], unknown, as("person 0")), unknown);
  await Promise.all(
    people.map(async (_person, n) => {
      const [neighbours, own] = await Promise.all([ask(n, n + 1), ask(n, n)]);
      expect(neighbours).toBe(missing);
      expect(own).not.toBe(missing);
      if (entry.waits) expect(own).toContain(`person ${n}`);
    }),
  );
  return "own alone";
}

/** Functions of a server that do not say whose task it is. */
const brokenScopes: readonly (() => unknown)[] = [
  () => undefined,
  () => null,
  () => "",
  () => 7,
  () => ({}),
  () => {
    throw new Error("postgres://secret is away");
  },
  () => Promise.reject(new Error("postgres://secret is away")),
];

/** A scope that cannot be told is an error, and never a bucket that people share. */
async function brokenScopeCell(entry: EntryPoint): Promise<string> {
  for (const scope of brokenScopes) {
    const started = startTasks({ scope: scope as never });
    started.tasks.taskTool("end", {}, () => text("done"));
    const session = await (await entry.open(started.tasks))();
    const message = await entry.send(session, unknown, as("ada"));
    expect(message.error?.code, `${String(scope)}: ${JSON.stringify(message)}`).toBe(-32_603);
    expect(JSON.stringify(message)).not.toContain("postgres");
    expect(started.store.calls).toEqual([]);
    takeErrors(started);
  }
  return "refused";
}

const rows: string[][] = [];

// CASES part 2, tasks: "no owner check".
test.for(all)("P31, P33, P34 and P35 hold on $name of $client", { timeout: 60_000 }, async (entry) => {
  const cells: string[] = [];
  for (const [, caller, where] of callers) cells.push(await cellOf(entry, caller, where));
  cells.push(await brokenScopeCell(entry), await hostileCell(entry), await crowdCell(entry));
  expect(cells.slice(0, 3), "owner, also in a new session, and another person in the same one").toEqual([
    "yes",
    "yes",
    "unknown",
  ]);
  rows.push([`\`${entry.name}\``, entry.client, ...cells]);
});

test("the page on access has this table", async () => {
  expect(rows).toHaveLength(all.length);
  const more = ["no scope told", "hostile ids", "ten people at once"];
  const head = ["entry point", "client", ...callers.map(([name]) => name), ...more];
  await expectGenerated("reference/access.md", "access", toTable(head, rows));
});
