import { statSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { TaskRecord } from "@longjobs/core";
import { expect, test } from "vitest";
import { WalTaskStore } from "../src/index.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";
import { wrappedFiles } from "./support/wrapped-files.ts";

test("what was acknowledged is there after closing and opening, deep-equal (C1, C19)", async () => {
  const dir = tempDir();
  const first = await openStore(dir);
  const given = record("a", { result: bigResult(3_000), scope: "me", progress: { done: 1 } });
  await first.store.create(given);
  expect(await first.store.get("a")).toEqual(given);
  await first.store.update("a", { status: "completed", progress: undefined }, 1);
  await first.store.close();

  const second = await openStore(dir);
  const { progress: _progress, ...rest } = given;
  expect(await second.store.get("a")).toEqual({ ...rest, status: "completed", version: 2 });
  expect(second.errors).toEqual([]);
});

test("a field of the name __proto__ is a field like any other, in create() and in update() (C7)", async () => {
  const dir = tempDir();
  const named = JSON.parse('{"__proto__":{"status":"completed"}}') as Partial<TaskRecord>;
  const { store } = await openStore(dir);
  await store.create({ ...record("a"), ...named });
  await store.create(record("b"));
  await store.update("b", named, 1);
  await store.update("a", { progress: { done: 1 } }, 1);
  await store.close();
  const { store: again } = await openStore(dir);
  for (const taskId of ["a", "b"]) {
    const found = await again.get(taskId);
    expect(Object.getOwnPropertyDescriptor(found, "__proto__")?.value).toEqual({ status: "completed" });
    expect(found).toMatchObject({ status: "working", version: 2 });
  }
});

test("every JSON value comes back deep-equal, from memory and from disk (C7)", async () => {
  const dir = tempDir();
  let deep: unknown = "end";
  for (let level = 0; level < 190; level += 1) deep = [deep];
  const strange: unknown = JSON.parse(
    `{"__proto__":{"x":1},"10":1,"2":2,"nul":"\\u0000","lone":"\\ud800","pair":"😀","empty":[{},[],null],"big":1e308,"tiny":5e-324}`,
  );
  const ids = ["plain", "", "__proto__", "../x", "\ud800 lone", "日本", "x".repeat(5_000)];
  const { store } = await openStore(dir);
  const given = ids.map((id) =>
    record(id, { data: { strange, deep } as never, result: bigResult(2_000, "ü") }),
  );
  for (const one of given) await store.create(one);
  for (const one of given) expect(await store.get(one.taskId)).toEqual(one);
  await store.close();
  const { store: again } = await openStore(dir);
  for (const one of given) expect(await again.get(one.taskId)).toEqual(one);
  expect(Object.hasOwn((await again.get("plain"))?.data as { strange: object } & object, "strange")).toBe(
    true,
  );
  expect(await again.get("unknown")).toBeUndefined();
});

test("records are values: changing what was given or received changes nothing (C6)", async () => {
  const { store } = await openStore(tempDir());
  const result = { content: [{ text: "as given" }] };
  const creating = store.create(record("a", { result }));
  const entry = result.content[0] as { text: string };
  entry.text = "changed at once";
  await creating;
  expect((await store.get("a"))?.result).toEqual({ content: [{ text: "as given" }] });
  const received = await store.get("a");
  expect(() => Object.assign(received?.result as object, { content: [] })).toThrow(TypeError);
});

test("update() with a stale version rejects and changes nothing; of parallel ones exactly one resolves (C9, C13)", async () => {
  const { store } = await openStore(tempDir());
  await store.create(record("a", { version: 7 }));
  const outcomes = await Promise.allSettled(
    Array.from({ length: 20 }, (_, index) => store.update("a", { progress: { done: index } }, 7)),
  );
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(await codeOf(store.update("a", { scope: "x" }, 7))).toBe("version_conflict");
  expect(await codeOf(store.update("b", { scope: "x" }, 7))).toBe("unknown_task");
  expect(await store.get("a")).toEqual(record("a", { version: 8, progress: { done: 0 } }));
});

test("of parallel create() calls with one id exactly one resolves (C2, C3)", async () => {
  const { store } = await openStore(tempDir());
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, (_, index) => store.create(record("a", { attempt: index }))),
  );
  expect(outcomes.map(({ status }) => status).filter((status) => status === "fulfilled")).toHaveLength(1);
  expect((await store.get("a"))?.attempt).toBe(0);
  expect(await codeOf(store.create(record("a")))).toBe("task_exists");
});

test("a patch that names taskId or version rejects with TypeError and changes nothing (C11)", async () => {
  const { store } = await openStore(tempDir());
  await store.create(record("a"));
  await expect(store.update("a", { version: 5 } as never, 1)).rejects.toThrow(TypeError);
  await expect(store.update("a", { taskId: "b" } as never, 1)).rejects.toThrow(TypeError);
  expect(await store.get("a")).toEqual(record("a"));
});

test("an expired task looks unknown, is swept once, and can be born anew, across openings (C5, C16, C17, C23)", async () => {
  const dir = tempDir();
  let nowMs = 1_000_000;
  const now = (): number => nowMs;
  const { store } = await openStore(dir, { now });
  await store.create(record("a", { ttlMs: 100 }));
  await store.create(record("b", { ttlMs: 500 }));
  nowMs += 99;
  expect(await store.get("a")).toBeDefined();
  nowMs += 1;
  expect(await store.get("a")).toBeUndefined();
  expect(await codeOf(store.update("a", { scope: "x" }, 1))).toBe("unknown_task");
  await store.close();

  const { store: second } = await openStore(dir, { now });
  expect(await second.get("a")).toBeUndefined();
  expect(await second.sweep()).toBe(1);
  expect(await second.sweep()).toBe(0);
  await second.create(record("a", { version: 40, ttlMs: 1_000 }));
  await second.close();

  const { store: third } = await openStore(dir, { now });
  expect(await third.get("a")).toEqual(record("a", { version: 40, ttlMs: 1_000 }));
  await third.update("b", { ttlMs: 5_000 }, 1);
  nowMs += 999;
  expect((await third.get("a"))?.version).toBe(40);
  nowMs += 1;
  expect(await third.get("a")).toBeUndefined();
  expect((await third.get("b"))?.version).toBe(2);
});

test("a swept task stays deleted when the clock goes back", async () => {
  const dir = tempDir();
  let nowMs = 1_000;
  const { store } = await openStore(dir, { now: () => nowMs });
  await store.create(record("a", { ttlMs: 10 }));
  nowMs = 2_000;
  expect(await store.sweep()).toBe(1);
  await store.close();
  nowMs = 1_000;
  const { store: again } = await openStore(dir, { now: () => nowMs });
  expect(await again.get("a")).toBeUndefined();
});

test("a record beyond the limit rejects with record_too_large by its exact bytes, and changes nothing (C20)", async () => {
  const { store } = await openStore(tempDir(), { maxRecordBytes: 1_000 });
  const overhead = Buffer.byteLength(JSON.stringify(record("a", { scope: "" })));
  const fits = record("a", { scope: "ü".repeat((1_000 - overhead) / 2).padEnd(0) });
  const scope = `${fits.scope}${"x".repeat(1_000 - Buffer.byteLength(JSON.stringify(fits)))}`;
  expect(await codeOf(store.create(record("a", { scope: `${scope}x` })))).toBe("record_too_large");
  expect(await store.get("a")).toBeUndefined();
  await store.create(record("a", { scope }));
  expect(await codeOf(store.update("a", { attempt: 10 }, 1))).toBe("record_too_large");
  expect(await store.get("a")).toEqual(record("a", { scope }));
});

test("values that are not JSON reject with invalid_json and poison nothing", async () => {
  const { store } = await openStore(tempDir());
  const cycle: Record<string, unknown> = {};
  cycle["self"] = cycle;
  let deep: unknown = 1;
  for (let level = 0; level < 20_000; level += 1) deep = [deep];
  for (const data of [1n, cycle, new Date(), { a: undefined }, Number.NaN, deep]) {
    expect(await codeOf(store.create(record("a", { data: data as never })))).toBe("invalid_json");
  }
  await store.create(record("a"));
  expect(await store.get("a")).toEqual(record("a"));
});

test("watch() tells of a change that can be read, until it is ended (C24)", async () => {
  const { store } = await openStore(tempDir());
  await store.create(record("a"));
  const seen: Promise<TaskRecord | undefined>[] = [];
  const end = await store.watch("a", () => seen.push(store.get("a")));
  await store.update("a", { scope: "one" }, 1);
  await store.create(record("b"));
  expect((await seen[0])?.scope).toBe("one");
  await end();
  await end();
  await store.update("a", { scope: "two" }, 2);
  expect(seen).toHaveLength(1);
});

test("close() finishes pending writes, is idempotent, and ends every other method (C18)", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir);
  const writes = Array.from({ length: 50 }, (_, index) => store.create(record(`t${index}`)));
  const closing = store.close();
  await Promise.all([...writes, closing, store.close()]);
  for (const call of [
    store.create(record("x")),
    store.get("x"),
    store.update("x", {}, 1),
    store.sweep(),
    store.watch("x", () => {}),
  ]) {
    expect(await codeOf(call)).toBe("store_closed");
  }
  const { store: again } = await openStore(dir);
  expect(await again.get("t49")).toEqual(record("t49"));
});

test("close() waits for writes that have to read first or stand in line, and for reads", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir);
  for (let index = 0; index < 20; index += 1)
    await store.create(record(`t${index}`, { result: bigResult(2_000) }));
  await store.close();
  const { store: second } = await openStore(dir, { cacheBytes: 0 });
  const writes = Array.from({ length: 20 }, (_, index) => [
    second.update(`t${index}`, { scope: "first" }, 1),
    second.update(`t${index}`, { scope: "second" }, 2),
  ]).flat();
  const reads = Array.from({ length: 20 }, (_, index) => second.get(`t${index}`));
  await second.close();
  expect(await Promise.all(writes)).toHaveLength(40);
  for (const read of await Promise.all(reads)) expect(read?.result).toEqual(bigResult(2_000));
  const { store: third } = await openStore(dir);
  for (let index = 0; index < 20; index += 1) expect((await third.get(`t${index}`))?.scope).toBe("second");
});

test("only the owner can look into the directory and its files", async () => {
  const dir = join(tempDir(), "made", "here");
  const { store } = await openStore(dir, { reserveBytes: 64 * 1024 });
  await store.create(record("a"));
  expect(statSync(dir).mode & 0o777).toBe(0o700);
  for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777, name).toBe(0o600);
});

test("options out of bounds are refused before anything is touched", async () => {
  const dir = join(tempDir(), "never");
  for (const options of [
    { maxRecordBytes: 0 },
    { segmentBytes: 10 },
    { reserveBytes: 5 },
    { cacheBytes: -1 },
    { maxRecordBytes: Number.NaN },
  ]) {
    await expect(WalTaskStore.open({ dir, ...options })).rejects.toThrow(RangeError);
  }
  for (const options of [{ dir: "" }, { fsync: "yes" }, { now: 5 }]) {
    await expect(WalTaskStore.open({ dir, ...options } as never)).rejects.toThrow(TypeError);
  }
  expect(() => statSync(dir)).toThrow("ENOENT");
});

test("a change of a small field writes less than 1,024 bytes, whatever the large fields are", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir);
  await store.create(
    record("a", { result: bigResult(256 * 1024), work: { tool: "t", arguments: { a: "b" } }, scope: "s" }),
  );
  const size = (): number =>
    readdirSync(dir)
      .filter((name) => name.endsWith(".log"))
      .reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);
  const before = size();
  for (let done = 0; done < 10; done += 1)
    await store.update("a", { progress: { done, message: "going on" } }, done + 1);
  expect((size() - before) / 10).toBeLessThan(1_024);
  await store.close();
  const { store: again } = await openStore(dir, { cacheBytes: 0 });
  await again.update("a", { progress: { done: 11 } }, 11);
  expect((await again.get("a"))?.result).toEqual(bigResult(256 * 1024));
});

test("finished tasks that are written and not read take no place in the cache from those that are", async () => {
  const dir = tempDir();
  const { store: first } = await openStore(dir);
  const finished = Array.from({ length: 20 }, (_, index) => `finished-${index}`);
  await first.create(record("hot"));
  for (const taskId of finished) await first.create(record(taskId, { status: "completed" }));
  await first.close();
  let reads = 0;
  const files = wrappedFiles((operation, run) => {
    if (operation.name === "file.read") reads += 1;
    return run();
  });
  const { store } = await openStore(dir, { files, cacheBytes: 4_000 });
  await store.get("hot");
  for (const taskId of finished) await store.update(taskId, { statusMessage: "Archived." }, 1);
  reads = 0;
  await store.get("hot");
  expect(reads).toBe(0);
  expect(await store.get("finished-7")).toMatchObject({ version: 2, statusMessage: "Archived." });
});
