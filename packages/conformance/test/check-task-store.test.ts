import { MemoryTaskStore, type TaskStore } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import {
  checkTaskStore,
  conformanceChecks,
  faultyTaskStore,
  type Report,
  type StoreFactory,
} from "../src/index.ts";
import { mutants } from "./mutants/index.ts";
import { onlyFiveMethods } from "./support/five-methods.ts";
import { referenceFactory } from "./support/reference-task-store.ts";

const wrongStore = mutants.find(({ caughtBy }) => caughtBy.join() === "update.applies-patch")?.Store;

/** What a store with the five methods and a factory that moves the clock cannot show. */
const optional: ReadonlySet<string> = new Set(["watch", "claim", "fault"]);

function memoryFactory(wrap: (store: TaskStore) => TaskStore = (store) => store): StoreFactory {
  return () => {
    let nowMs = Date.now();
    return {
      store: wrap(new MemoryTaskStore({ now: () => nowMs })),
      advanceTime: (ms) => {
        nowMs += ms;
      },
    };
  };
}

function outcomes(report: Report, outcome: string): string[] {
  return report.results.filter((result) => result.outcome === outcome).map(({ id }) => id);
}

describe("right stores", () => {
  test("MemoryTaskStore passes every check", async () => {
    const report = await checkTaskStore("MemoryTaskStore", memoryFactory());
    expect(outcomes(report, "failed")).toEqual([]);
    expect(outcomes(report, "inapplicable")).toEqual(idsNeeding("fault", "volatile"));
    expect(report.ok).toBe(true);
  });

  test("a store with the five methods alone passes; the checks of watch and of leases do not apply", async () => {
    const report = await checkTaskStore("five methods", memoryFactory(onlyFiveMethods));
    expect(report.ok).toBe(true);
    expect(outcomes(report, "inapplicable")).toEqual(
      conformanceChecks
        .filter(({ profile, needs }) => profile === "volatile" && needs.some((need) => optional.has(need)))
        .map(({ id }) => id),
    );
  });

  test("the faulty store without faults passes", async () => {
    const report = await checkTaskStore(
      "wrapped",
      memoryFactory((store) => faultyTaskStore(store, {})),
    );
    expect(report.ok).toBe(true);
    expect(outcomes(report, "inapplicable")).toEqual(idsNeeding("fault", "volatile"));
  });
});

describe("a claim needs evidence", () => {
  test("durable without reopen fails; crash and fault stay optional", async () => {
    const report = await checkTaskStore("store", memoryFactory(), { profile: "durable" });
    expect(outcomes(report, "failed")).toEqual(idsNeeding("reopen", "volatile", "durable"));
    expect(outcomes(report, "inapplicable").toSorted()).toEqual(
      [...idsNeeding("crash", "durable"), ...idsNeeding("fault", "volatile")].toSorted(),
    );
  });

  test("shared without second fails", async () => {
    const report = await checkTaskStore("store", memoryFactory(), { profile: "shared" });
    expect(outcomes(report, "failed")).toEqual(expect.arrayContaining(idsNeeding("second", "shared")));
    expect(report.ok).toBe(false);
  });

  test("a fault that disturbs nothing is no evidence", async () => {
    const report = await checkTaskStore("store", async () => ({
      ...(await memoryFactory()()),
      fault: () => () => {},
    }));
    expect(outcomes(report, "failed")).toEqual(["fault.writes-reject-with-a-code"]);
  });

  test("without a way for time to pass every time check fails", async () => {
    const report = await checkTaskStore("store", () => ({ store: new MemoryTaskStore() }));
    expect(outcomes(report, "failed")).toEqual(idsNeeding("time", "volatile"));
  });

  test("a factory that returns the same store twice fails", async () => {
    const { store, ...abilities } = await memoryFactory()();
    const report = await checkTaskStore("store", () => ({ store, ...abilities }));
    expect(report.counts.failed).toBe(report.results.length - 1);
  });

  test("a claim without evidence cannot be skipped", async () => {
    const skips = [{ id: "durable.records-survive", reason: "the memory is volatile" }];
    const report = await checkTaskStore("store", memoryFactory(), { profile: "durable", skips });
    expect(outcomes(report, "failed")).toContain("durable.records-survive");
    expect(outcomes(report, "skipped")).toEqual([]);
  });

  test("a factory whose stores share their data fails, and the message says so", async () => {
    const shared = new MemoryTaskStore();
    const factory = (): { store: TaskStore } => ({
      store: { ...onlyFiveMethods(shared), close: async () => {} },
    });
    const report = await checkTaskStore("store", factory);
    const faults = report.results.filter(({ message }) => message?.includes("not fresh"));
    expect(faults.length).toBeGreaterThan(report.results.length / 2);
    expect(report.ok).toBe(false);
  });

  test("every store is disposed of, whatever became of its check", async () => {
    let open = 0;
    const counted: StoreFactory = async () => {
      open += 1;
      const subject = await memoryFactory()();
      return {
        ...subject,
        dispose: () => {
          open -= 1;
        },
      };
    };
    await checkTaskStore("store", counted, { profile: "shared" });
    expect(open).toBe(0);
  });

  test("a factory that rejects fails each check, and nothing else", async () => {
    const report = await checkTaskStore("store", () => Promise.reject(new Error("no disk")));
    expect(report.counts.failed).toBe(report.results.length);
    expect(report.results[0]?.message).toContain("no disk");
  });
});

describe("skips", () => {
  test("a known fault is skipped with its reason, and the report is ok", async () => {
    const skips = [{ id: "update.applies-patch", reason: "its clock is its own" }];
    const report = await checkTaskStore("store", referenceFactory(wrongStore), { skips });
    const skipped = report.results.filter(({ outcome }) => outcome === "skipped");
    expect(skipped).toMatchObject([{ id: "update.applies-patch", message: "its clock is its own" }]);
    expect(report.ok).toBe(true);
  });

  test("a skipped check that would pass is a failure", async () => {
    const skips = [{ id: "update.applies-patch", reason: "repaired long ago" }];
    const report = await checkTaskStore("store", referenceFactory(), { skips });
    expect(outcomes(report, "failed")).toEqual(["update.applies-patch"]);
  });

  test("an unknown id and an empty reason are problems of the report", async () => {
    const skips = [
      { id: "update.apply-patch", reason: "misspelt" },
      { id: "update.applies-patch", reason: " " },
    ];
    const report = await checkTaskStore("store", referenceFactory(wrongStore), { skips });
    expect(report.problems).toHaveLength(2);
    expect(report.ok).toBe(false);
  });
});

describe("the report", () => {
  test("prints as a table with a line for each check and the counts", async () => {
    const report = await checkTaskStore("wrong", referenceFactory(wrongStore), { profile: "shared" });
    const lines = report.toTable().split("\n");
    expect(lines).toHaveLength(conformanceChecks.length + 2);
    expect(lines.at(-1)).toBe(`${conformanceChecks.length - 1} passed, 1 failed, 0 skipped, 0 inapplicable`);
    expect(lines.find((line) => line.startsWith("failed"))).toMatch(
      /C8 +update\.applies-patch +.*lastUpdatedAt/,
    );
  });

  test("is JSON that says the same", async () => {
    const report = await checkTaskStore("wrong", referenceFactory(wrongStore));
    const parsed = JSON.parse(JSON.stringify(report)) as Report;
    expect(parsed).toMatchObject({ name: "wrong", profile: "volatile", ok: false, counts: { failed: 1 } });
    expect(parsed.results).toEqual(report.results);
  });

  test("says which check did not come to an end", async () => {
    const hanging = memoryFactory((store) =>
      faultyTaskStore(store, { before: ({ method }) => hangOn(method, "sweep") }),
    );
    const report = await checkTaskStore("hanging", hanging, { checkDeadlineMs: 100 });
    expect(outcomes(report, "failed")).toEqual(expect.arrayContaining(["sweep.resolves-to-count"]));
    expect(report.results.find(({ id }) => id === "sweep.resolves-to-count")?.message).toContain("100 ms");
  });
});

function idsNeeding(need: string, ...profiles: string[]): string[] {
  return conformanceChecks
    .filter(({ needs, profile }) => needs.some((each) => each === need) && profiles.includes(profile))
    .map(({ id }) => id);
}

function hangOn(method: string, hanging: string): Promise<void> | undefined {
  return method === hanging ? new Promise<never>(() => undefined) : undefined;
}
