import { createHash } from "node:crypto";

import * as fc from "fast-check";
import { beforeEach, test, vi } from "vitest";

import type { MemoryTaskStore, TaskStore } from "../src/index.ts";
import { Fleet, leaseMs, type Instruction } from "./support/fleet.ts";
import { fiveMethods } from "./support/five-methods.ts";
import { withLostHints, withoutWatch } from "./support/spied-store.ts";

type Step = (fleet: Fleet) => Promise<void> | void;

/** A step that prints as what it is. */
function named(name: string, run: Step): Step {
  return Object.assign(run, { [fc.toStringMethod]: () => name });
}

const size = 2;
const slot = fc.nat({ max: size - 1 });
const pick = fc.nat({ max: 5 });
const key = fc.constantFrom("a", "b");
const value = fc.nat({ max: 9 });

const instruction: fc.Arbitrary<Instruction> = fc.oneof(
  fc.record({ do: fc.constantFrom("progress", "checkpoint"), value }),
  { arbitrary: fc.record({ do: fc.constant("ask"), key }), weight: 2 },
  fc.record({ do: fc.constantFrom("complete", "reject", "fail") }),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    arbitrary: fc
      .tuple(slot, fc.constantFrom("crawl", "crawl", "pay"), fc.boolean())
      .map(([at, tool, stubborn]) =>
        named(`create ${tool}${stubborn ? ", stubborn," : ""} on ${at}`, (fleet) =>
          fleet.create(at, tool, stubborn),
        ),
      ),
    weight: 3,
  },
  {
    arbitrary: fc
      .tuple(pick, instruction)
      .map(([at, told]) => named(`tell ${at} ${JSON.stringify(told)}`, (fleet) => fleet.instruct(at, told))),
    weight: 5,
  },
  {
    arbitrary: fc
      .tuple(slot, pick, key, value)
      .map(([at, task, asked, given]) =>
        named(`answer ${asked} of ${task} with ${given} on ${at}`, (fleet) =>
          fleet.answer(at, task, asked, given),
        ),
      ),
    weight: 2,
  },
  fc
    .tuple(slot, pick)
    .map(([at, task]) => named(`cancel ${task} on ${at}`, (fleet) => fleet.cancel(at, task))),
  {
    arbitrary: slot.map((at) => named(`crash ${at}`, (fleet) => fleet.crash(at))),
    weight: 2,
  },
  { arbitrary: slot.map((at) => named(`restart ${at}`, (fleet) => fleet.restart(at))), weight: 3 },
  fc
    .tuple(slot, fc.constantFrom(0, 2_000))
    .map(([at, drainMs]) => named(`redeploy ${at} in ${drainMs}`, (fleet) => fleet.redeploy(at, drainMs))),
  fc
    .tuple(slot, fc.constantFrom("calls", "replies"))
    .map(([at, held]) => named(`${at} is cut off from its ${held}`, (fleet) => fleet.cutOff(at, held))),
  { arbitrary: slot.map((at) => named(`${at} is connected`, (fleet) => fleet.connect(at))), weight: 2 },
  fc
    .tuple(slot, fc.constantFrom(-300_000, -1_000, 0, 1_000, leaseMs, 300_000))
    .map(([at, skewMs]) => named(`clock of ${at} off by ${skewMs}`, (fleet) => fleet.setClock(at, skewMs))),
  {
    arbitrary: fc
      .constantFrom(1, 250, leaseMs / 3, leaseMs / 3 + 1, leaseMs - 1, leaseMs, 2 * leaseMs + 7)
      .map((ms) => named(`${ms} ms pass`, (fleet) => fleet.advance(ms))),
    weight: 5,
  },
);

// A digest of Web Crypto takes real time, of which there is none here.
beforeEach(() => {
  vi.spyOn(crypto.subtle, "digest").mockImplementation(async (_algorithm, bytes) => {
    const digest = createHash("sha256")
      .update(bytes as Uint8Array)
      .digest();
    return new Uint8Array(digest).buffer;
  });
});

const stores: readonly (readonly [string, (store: MemoryTaskStore) => TaskStore])[] = [
  ["the memory store", (store) => store],
  ["a store without watch", withoutWatch],
  ["a store whose hints are lost", withLostHints],
  ["a store of five methods", fiveMethods],
];

test.each(stores)(
  "in every sequence of calls, crashes, deploys, standstills and clock steps over %s each task has one outcome, and loses nothing",
  async (_name, show) => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
        const fleet = new Fleet(size, show);
        try {
          for (const run of steps) await fleet.step(() => run(fleet));
          await fleet.finish();
        } finally {
          await fleet.close();
        }
      }),
      { numRuns: Number(process.env["LONGJOBS_PROPERTY_RUNS"] ?? 60) },
    );
  },
  Number(process.env["LONGJOBS_PROPERTY_RUNS"] ?? 0) * 2_000 + 60_000,
);
