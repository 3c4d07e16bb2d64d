import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { shardOf, StoreKeys } from "../src/store-keys.ts";
import { WatchLooks } from "../src/watch-looks.ts";

const intervalMs = 1_000;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** Looks at a server that is told what it holds, and what it was asked for. */
function looksAt(server: { down: boolean; readonly versions: Map<string, string> }) {
  const watched = new Set<string>();
  const calls: (readonly string[])[] = [];
  const hints: string[] = [];
  const failures: unknown[] = [];
  const findVersions = async (keys: readonly string[]): Promise<(string | null)[]> => {
    calls.push(keys);
    if (server.down) throw new Error("away");
    return keys.map((key) => server.versions.get(key.slice(key.indexOf(":t:") + 3)) ?? null);
  };
  const looks = new WatchLooks({
    findVersions,
    keys: new StoreKeys("prefix"),
    watched: () => watched,
    onHint: (taskId) => hints.push(taskId),
    onFailure: (error) => failures.push(error),
    intervalMs,
  });
  const pass = (): Promise<unknown> => vi.advanceTimersByTimeAsync(intervalMs);
  return { looks, watched, calls, hints, failures, pass };
}

/** So many ids of one shard. */
function neighbours(count: number): string[] {
  const ids: string[] = [];
  for (let index = 0; ids.length < count; index += 1)
    if (shardOf(`task-${index}`) === 7) ids.push(`task-${index}`);
  return ids;
}

it("one command per shard and interval looks at all watched tasks, and only a change is told", async () => {
  const [first = "", second = "", third = ""] = neighbours(3);
  const versions = new Map([first, second, third].map((taskId) => [taskId, "1"]));
  const { looks, watched, calls, hints, pass } = looksAt({ down: false, versions });
  for (const taskId of versions.keys()) watched.add(taskId);
  looks.start();
  looks.start();
  await pass();
  expect(calls.map(({ length }) => length)).toEqual([3]);
  // What happened before the first look is not known.
  expect(hints.splice(0)).toEqual([first, second, third]);
  await pass();
  expect(calls).toHaveLength(2);
  expect(hints).toEqual([]);
  versions.set(second, "2");
  versions.delete(third);
  await pass();
  expect(hints).toEqual([second, third]);
  looks.stop();
});

it("a shard that cannot be asked keeps no other from being told, and is told of later", async () => {
  const versions = new Map([["task", "1"]]);
  const server = { down: true, versions };
  const { looks, watched, hints, failures, pass } = looksAt(server);
  watched.add("task");
  looks.start();
  await pass();
  expect(failures).toEqual([new Error("away")]);
  expect(hints).toEqual([]);
  server.down = false;
  await pass();
  expect(hints).toEqual(["task"]);
  looks.stop();
});

it("nothing is asked and no timer runs while nobody watches, and after stop()", async () => {
  const { looks, watched, calls, pass } = looksAt({ down: false, versions: new Map() });
  looks.start();
  await pass();
  expect(calls).toEqual([]);
  expect(vi.getTimerCount()).toBe(0);
  watched.add("task");
  looks.start();
  await pass();
  expect(calls).toHaveLength(1);
  looks.stop();
  expect(vi.getTimerCount()).toBe(0);
});
