import { describe, expect, test } from "vitest";

import { idOf, openEntry } from "./support/entries.ts";
import { HttpDoor } from "./support/http-door.ts";
import { keyMeta } from "./support/keyed-clients.ts";
import { startTasks } from "./support/started-tasks.ts";
import { text } from "./support/tools.ts";

const many = 400;

/** The bits of an id in hex digits, however they are grouped. */
function bitsOf(id: string): number[] {
  expect(id).toMatch(/^[0-9a-f-]+$/);
  return Array.from(id.replaceAll("-", "")).flatMap((digit) =>
    [8, 4, 2, 1].map((weight) => (Number.parseInt(digit, 16) & weight) / weight),
  );
}

/** How many bits are set about as often as not: within six standard deviations, which chance misses once in 10^7 tests. */
function freeBits(ids: readonly string[]): number {
  const bits = ids.map(bitsOf);
  const deviation = Math.sqrt(ids.length) / 2;
  return (bits[0] ?? []).filter((_bit, place) => {
    const set = bits.reduce((sum, id) => sum + (id[place] ?? 0), 0);
    return Math.abs(set - ids.length / 2) < 6 * deviation;
  }).length;
}

/** How many neighbours share a beginning: a clock, a counter or a name would be there. */
function sharedBeginnings(ids: readonly string[]): number {
  return ids.filter((id, n) => n > 0 && id.slice(0, 7) === ids[n - 1]?.slice(0, 7)).length;
}

// CASES part 2, tasks: "ids have ~74 bits".
describe("ids cannot be guessed", () => {
  async function collect(key?: (n: number) => string): Promise<string[]> {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("done"));
    const door = new HttpDoor(tasks);
    const ids: string[] = [];
    for (let n = 0; n < many; n += 1) {
      const meta = key === undefined ? {} : { meta: { [keyMeta]: key(n) } };
      ids.push((await door.callTool("work", {}, meta)).taskId ?? "");
    }
    return ids;
  }

  test("at least 122 bits of each are random, and no two begin alike", async () => {
    const ids = await collect();
    expect(new Set(ids).size).toBe(many);
    expect(freeBits(ids)).toBeGreaterThanOrEqual(122);
    expect(sharedBeginnings(ids)).toBe(0);
  });

  test("nor can those of calls with an idempotency key, which say nothing of the key", async () => {
    const ids = await collect((n) => `order-${n}`);
    expect(freeBits(ids)).toBeGreaterThanOrEqual(122);
    expect(sharedBeginnings(ids)).toBe(0);
    // Another server has another secret.
    const others = new Set(await collect((n) => `order-${n}`));
    expect(ids.filter((id) => others.has(id))).toEqual([]);
  });

  test("a client without tasks gets the same kind of id", async () => {
    const { tasks } = startTasks();
    tasks.taskTool("work", { inlineBudgetMs: 0 }, () => text("done"));
    const client = await openEntry(tasks);
    const ids = [idOf(await client.call("work")), idOf(await client.call("work"))];
    for (const id of ids) expect(bitsOf(id).length).toBeGreaterThanOrEqual(128);
    expect(ids[0]?.slice(0, 7)).not.toBe(ids[1]?.slice(0, 7));
  });
});
