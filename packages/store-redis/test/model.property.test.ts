import {
  MemoryTaskStore,
  type LeasingTaskStore,
  type TaskPatch,
  type TaskRecord,
  type TaskStore,
} from "@longjobs/core";
import * as fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import { findRedis, withRedis } from "./support/find-redis.ts";
import { record } from "./support/records.ts";
import { testClient, testStore } from "./support/store-fixture.ts";

const found = await findRedis();
afterAll(() => found?.stop());

type Store = TaskStore & LeasingTaskStore;

/** One call, and what it shows that two right stores must agree on. */
type Call = (store: Store, taskIds: readonly string[]) => Promise<unknown>;

const hourMs = 3_600_000;
const tools = ["render", "crawl", "", '"', "@tool"];
const anyText = fc.string({ unit: "binary", maxLength: 600 });
const anyJson = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<never>;

/** The clock of the server cannot be moved: a lease is long or has lapsed, a task lives long or has expired. */
const fields = {
  status: fc.constantFrom("working", "working", "input_required", "completed", "failed", "cancelled"),
  ttlMs: fc.constantFrom(null, hourMs, 1e300, 0),
  lease: fc.record({
    owner: anyText,
    token: fc.constantFrom("", "a", "@b"),
    durationMs: fc.constant(hourMs),
  }),
  work: fc.record({ tool: fc.constantFrom(...tools), arguments: anyJson }),
  cancelRequestedAt: fc.constant("2026-01-02T03:04:05.678Z"),
  kind: fc.constantFrom("transfer"),
  statusMessage: anyText,
  inputs: anyJson,
  data: anyJson,
  "@index": anyJson,
  [JSON.stringify("quoted")]: anyJson,
  "\ud800": anyJson,
};

const someFields = fc.record(fields, { requiredKeys: [] }) as fc.Arbitrary<Partial<TaskRecord>>;
const somePatch = fc.record(
  Object.fromEntries(
    Object.entries(fields).map(([name, values]) => [
      name,
      // A record always has a status and a time to live.
      name === "status" || name === "ttlMs"
        ? values
        : fc.option(values as fc.Arbitrary<unknown>, { nil: undefined, freq: 2 }),
    ]),
  ),
  { requiredKeys: [] },
) as fc.Arbitrary<TaskPatch>;

const anyIndex = fc.nat(2);
const anyCall: fc.Arbitrary<Call> = fc.oneof(
  fc.tuple(anyIndex, someFields, fc.nat(2 ** 31 - 1)).map(
    ([index, some, version]): Call =>
      (store, ids) =>
        store.create(record(ids[index] ?? "", { version, ...some })),
  ),
  {
    weight: 3,
    arbitrary: fc
      .tuple(anyIndex, somePatch, fc.constantFrom(0, 0, 0, 0, -1, 1))
      .map(([index, patch, off]): Call => async (store, ids) => {
        const { version = 7 } = (await store.get(ids[index] ?? "")) ?? {};
        return store.update(ids[index] ?? "", patch, version + off);
      }),
  },
  fc
    .tuple(fc.option(fc.subarray([0, 1, 2])), fc.option(fc.subarray(tools)))
    .map(([indexes, some]): Call => async (store, ids) => {
      const taskIds = indexes?.map((index) => ids[index] ?? "");
      const options = { limit: 10, ...(taskIds && { taskIds }), ...(some && { tools: some }) };
      const claimed = await store.claim("claimer", hourMs, options);
      return claimed
        .map(comparable)
        .toSorted((left, right) => ids.indexOf(left.taskId) - ids.indexOf(right.taskId));
    }),
  anyIndex.map((index): Call => async (store, ids) => {
    const taskId = ids[index] ?? "";
    const token = (await store.get(taskId))?.lease?.token ?? "none";
    const wrong = await store.renew([{ taskId, token: "wrong" }], 1);
    return [wrong, await store.renew([{ taskId, token }], hourMs)];
  }),
);

withRedis("any sequence of calls", found, (url) => {
  it("gives what a store in memory gives", async () => {
    const client = testClient(url);
    // Two handles in turn, neither of which has seen all that the other did.
    const { store: first, keyPrefix } = testStore(url, { client });
    const { store: second } = testStore(url, { client, keyPrefix });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyCall, { minLength: 1, maxLength: 25 }), async (calls) => {
        const model = new MemoryTaskStore();
        const ids = ["plain", "odd {0}", '"\u0000\ud800'].map((id) => `${id} ${(run += 1)}`);
        for (const [step, call] of calls.entries()) {
          const store = step % 2 ? first : second;
          expect(await outcomeOf(call(store, ids))).toEqual(await outcomeOf(call(model, ids)));
          for (const id of ids)
            expect(comparable(await store.get(id))).toEqual(comparable(await model.get(id)));
        }
        // What is left must not be claimed by the next run.
        for (const id of ids) await end(first, id);
      }),
      { numRuns: Number(process.env["LONGJOBS_PROPERTY_RUNS"] ?? 60) },
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

/** The token of a claim is random; that it is a text can be compared. */
function comparable<Found extends TaskRecord | undefined>(seen: Found): Found {
  return seen?.lease === undefined
    ? seen
    : { ...seen, lease: { ...seen.lease, token: typeof seen.lease.token } };
}

async function end(store: Store, taskId: string): Promise<void> {
  const left = await store.get(taskId);
  if (left !== undefined) await store.update(taskId, { status: "completed" }, left.version);
}
