import { expect, test } from "vitest";
import { CachedTask } from "../src/cached-task.ts";
import { encodeId } from "../src/encode-id.ts";
import { RecordCache } from "../src/record-cache.ts";
import { record } from "./support/records.ts";

const OVERHEAD = 512;
const task = (taskId: string, bytes: number): CachedTask =>
  CachedTask.ofRecord({ record: record(taskId), id: encodeId(taskId), bytes: bytes - OVERHEAD }, []);

test("the cache never holds more bytes than it may, and keeps what was used last", () => {
  const cache = new RecordCache(100_000);
  for (let index = 0; index < 1_000; index += 1) {
    cache.set(`t${index}`, task(`t${index}`, 1_000));
    cache.get("t0");
    const held = Array.from({ length: index + 1 }, (_, one) => cache.get(`t${one}`)).filter(
      (one) => one !== undefined,
    );
    if (index % 250 === 0) expect(held.length).toBeLessThanOrEqual(100);
  }
  for (let index = 0; index < 200; index += 1) {
    cache.set(`u${index}`, task(`u${index}`, 1_000));
    expect(cache.get("u0"), `after ${index} others`).toBeDefined();
  }
  expect(cache.get("u20")).toBeUndefined();
  expect(cache.get("u199")).toBeDefined();
});

test("a task of more than half the room has it alone; a larger one is not kept", () => {
  const cache = new RecordCache(100_000);
  for (let index = 0; index < 60; index += 1) cache.set(`t${index}`, task(`t${index}`, 1_000));
  cache.set("large", task("large", 80_000));
  expect(cache.get("large")).toBeDefined();
  expect(cache.get("t59")).toBeUndefined();
  cache.set("larger", task("larger", 100_001));
  expect(cache.get("larger")).toBeUndefined();
  cache.delete("large");
  expect(cache.get("large")).toBeUndefined();
  for (let index = 0; index < 40; index += 1) cache.set(`v${index}`, task(`v${index}`, 1_000));
  for (let index = 0; index < 40; index += 1) expect(cache.get(`v${index}`)).toBeDefined();
});
