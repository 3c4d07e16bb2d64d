import { MemoryTaskStore, type TaskPatch, type TaskRecord } from "@longjobs/core";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { PostgresTaskStore } from "../src/index.ts";
import { freshStore } from "./support/fresh-schema.ts";
import { record } from "./support/records.ts";
import { withPostgres } from "./support/with-postgres.ts";

type Store = Pick<PostgresTaskStore, "create" | "get" | "update" | "claim" | "renew" | "sweep">;

/** A call that both stores are given. What it resolves to is compared. */
type Call = (store: Store) => Promise<unknown>;

const ids = ["task-1", "task-2", 'odd "\\\u0000\uD800 id'];
const anyId = fc.constantFrom(...ids);
const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<never>;
const text = fc.string({ unit: "binary", maxLength: 800 });
const hour = 3_600_000;

/** No clock is moved: a lease is long, or there is none. */
const lease = fc.record({
  owner: text,
  token: fc.constantFrom("a", 'odd "\\\u0000 token'),
  durationMs: fc.constant(hour),
});

const fields = {
  status: fc.constantFrom("working", "input_required", "completed", "failed", "cancelled"),
  ttlMs: fc.constantFrom(null, hour, 1e300),
  statusMessage: text,
  scope: text,
  work: fc.record({ tool: fc.constantFrom("render", "crawl", "\u0000"), arguments: json }),
  result: fc.dictionary(text, json, { maxKeys: 3 }),
  inputs: json,
  checkpoint: json,
  progress: json,
  cancelRequestedAt: fc.constant("2026-01-02T03:04:05.678Z"),
  lease,
  attempt: fc.nat(),
  kind: fc.constant("transfer"),
  data: json,
  laterField: json,
  "odd \u0000\uD800 name": json,
};

const someFields = fc.record(fields, { requiredKeys: [] }) as fc.Arbitrary<Partial<TaskRecord>>;
const patch = fc.record(
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      name === "status" ? value : fc.option(value as fc.Arbitrary<unknown>, { nil: undefined, freq: 3 }),
    ]),
  ),
  { requiredKeys: [] },
) as fc.Arbitrary<TaskPatch>;

const call: fc.Arbitrary<Call> = fc.oneof(
  fc.tuple(anyId, someFields, fc.nat(1_000)).map(
    ([taskId, some, version]): Call =>
      (store) =>
        store.create(record(taskId, { version, ...some })),
  ),
  fc
    .tuple(anyId, patch, fc.constantFrom(0, 0, 0, -1, 1))
    .map(([taskId, change, off]): Call => async (store) => {
      const found = await store.get(taskId);
      return store.update(taskId, change, (found?.version ?? 5) + off);
    }),
  fc
    .tuple(fc.option(fc.subarray(ids)), fc.option(fc.subarray(["render", "\u0000"])))
    .map(([taskIds, tools]): Call => async (store) => {
      const options = { limit: 9, ...(taskIds && { taskIds }), ...(tools && { tools }) };
      const claimed = await store.claim("owner", hour, options);
      return claimed.map(withoutToken).toSorted((left, right) => (left.taskId < right.taskId ? -1 : 1));
    }),
  anyId.map((taskId): Call => async (store) => {
    const token = (await store.get(taskId))?.lease?.token ?? "none";
    return [await store.renew([{ taskId, token }], hour), await store.renew([{ taskId, token: "c" }], 1)];
  }),
  fc.constant<Call>((store) => store.sweep()),
);

withPostgres("any sequence of calls", () => {
  it("gives what a store in memory gives", async () => {
    const { store, sql } = await freshStore();
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 20 }), async (calls) => {
        await sql("TRUNCATE tasks");
        const model = new MemoryTaskStore();
        for (const make of calls) {
          const [here, there] = [await outcomeOf(make(store)), await outcomeOf(make(model))];
          expect(here).toEqual(there);
          for (const taskId of ids) {
            expect(withoutToken(await store.get(taskId))).toEqual(withoutToken(await model.get(taskId)));
          }
        }
      }),
      { numRuns: Number(process.env["LONGJOBS_PROPERTY_RUNS"] ?? 40) },
    );
  }, 600_000);
});

async function outcomeOf(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    return (error as { code?: string }).code ?? (error as Error).name;
  }
}

/** The token of a claim is random: only that there is one can be compared. */
function withoutToken<Found extends TaskRecord | undefined>(found: Found): Found {
  return found?.lease === undefined
    ? found
    : { ...found, lease: { ...found.lease, token: typeof found.lease.token } };
}
