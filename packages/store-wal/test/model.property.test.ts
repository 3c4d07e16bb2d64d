import { rmSync } from "node:fs";
import { join } from "node:path";
import { MemoryTaskStore, type JsonValue, type TaskPatch, type TaskStore } from "@longjobs/core";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { WalTaskStore } from "../src/index.ts";
import { copyWithoutLocks, mortalFiles } from "./support/crash-store.ts";
import { codeOf } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { quickTempDir } from "./support/temp-dir.ts";

const ids = ["a", "b", "c", "__proto__", "\ud800"];

type Write =
  | { readonly kind: "create"; readonly id: string; readonly ttlMs: number | null; readonly data: JsonValue }
  | { readonly kind: "update"; readonly id: string; readonly stale: boolean; readonly patch: TaskPatch };

type Step =
  | { readonly kind: "together"; readonly writes: readonly Write[] }
  | { readonly kind: "advance"; readonly ms: number }
  | { readonly kind: "sweep" | "reopen" | "crash" };

const id = fc.constantFrom(...ids);
const json = fc.oneof(
  fc.jsonValue({ maxDepth: 3, stringUnit: "binary" }),
  fc.integer({ min: 500, max: 3_000 }).map((length) => "ü".repeat(length)),
) as fc.Arbitrary<JsonValue>;
const ttlMs = fc.oneof(fc.constant(null), fc.integer({ min: 1, max: 500 }));
const patch: fc.Arbitrary<TaskPatch> = fc.record(
  {
    data: fc.option(json, { nil: undefined }),
    result: fc.option(fc.dictionary(fc.string(), json, { maxKeys: 2 }), { nil: undefined }),
    statusMessage: fc.option(fc.string(), { nil: undefined }),
    status: fc.constantFrom("working" as const, "completed" as const),
    ttlMs,
  },
  { requiredKeys: [] },
);
const write: fc.Arbitrary<Write> = fc.oneof(
  fc.record({ kind: fc.constant("create" as const), id, ttlMs, data: json }),
  fc.record({ kind: fc.constant("update" as const), id, stale: fc.boolean(), patch }),
  fc.record({ kind: fc.constant("update" as const), id, stale: fc.constant(false), patch }),
);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("together" as const),
      writes: fc.array(write, { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("advance" as const), ms: fc.integer({ min: 1, max: 300 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      { kind: "sweep" as const },
      { kind: "reopen" as const },
      { kind: "crash" as const },
    ),
  },
);

/** Sequences in a short run; `LONGJOBS_PROPERTY_RUNS` asks for more. */
const RUNS = Number(process.env["LONGJOBS_PROPERTY_RUNS"] ?? 60);

/** A failure is shrunk only as long as this: its seed and its path are printed in any case. */
const LIMIT_MS = 60_000 + RUNS * 100;

async function perform(
  store: TaskStore,
  asked: Write,
  versions: ReadonlyMap<string, number>,
): Promise<string | undefined> {
  if (asked.kind === "create") {
    return codeOf(store.create(record(asked.id, { version: 100, ttlMs: asked.ttlMs, data: asked.data })));
  }
  const version = (versions.get(asked.id) ?? 1) - (asked.stale ? 1 : 0);
  return codeOf(store.update(asked.id, asked.patch, version));
}

test(
  "every sequence of writes, expiries, sweeps, closings and kills gives what a store in memory gives",
  { timeout: LIMIT_MS + 30_000 },
  async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 5, maxLength: 40 }),
        fc.constantFrom(0, 8_000, 1_000_000),
        async (steps, cacheBytes) => {
          const root = quickTempDir();
          let nowMs = 1_000_000;
          let lives = 0;
          let dir = join(root, "0");
          let mortal = mortalFiles();
          const errors: unknown[] = [];
          const now = (): number => nowMs;
          const open = (): Promise<WalTaskStore> =>
            WalTaskStore.open({
              dir,
              now,
              cacheBytes,
              segmentBytes: 8_192,
              compactionFloorBytes: 4_096,
              reserveBytes: null,
              files: mortal.files,
              onError: (error) => errors.push(error),
            });
          const model = new MemoryTaskStore({ now });
          let store = await open();
          for (const one of steps) {
            switch (one.kind) {
              case "together": {
                const versions = new Map<string, number>();
                for (const known of ids) versions.set(known, (await model.get(known))?.version ?? 1);
                // The first of several writers of one task wins, in both stores.
                const expected = await Promise.all(one.writes.map((each) => perform(model, each, versions)));
                expect(await Promise.all(one.writes.map((each) => perform(store, each, versions)))).toEqual(
                  expected,
                );
                break;
              }
              case "advance":
                nowMs += one.ms;
                break;
              case "sweep":
                await Promise.all([model.sweep(), store.sweep()]);
                break;
              case "reopen":
                await store.close();
                store = await open();
                break;
              case "crash":
                await mortal.die();
                mortal = mortalFiles();
                lives += 1;
                copyWithoutLocks(dir, join(root, String(lives)));
                dir = join(root, String(lives));
                store = await open();
                break;
            }
            for (const known of ids) expect(await store.get(known)).toEqual(await model.get(known));
          }
          await store.close();
          expect(errors).toEqual([]);
          rmSync(root, { recursive: true });
        },
      ),
      { numRuns: RUNS, interruptAfterTimeLimit: LIMIT_MS, markInterruptAsFailure: true },
    );
  },
);
