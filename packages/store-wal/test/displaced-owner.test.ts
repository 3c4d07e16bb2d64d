import { readdirSync, rmSync } from "node:fs";
import { expect, test } from "vitest";
import { churnUntil, segmentsIn } from "./support/churn.ts";
import { codeOf, openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { takeForDead } from "./support/silent-owner.ts";
import { tempDir } from "./support/temp-dir.ts";
import { waitUntil } from "./support/wait-until.ts";
import { isSegment, wrappedFiles } from "./support/wrapped-files.ts";

test("an owner that was taken for dead acknowledges nothing, however many owners came since", async () => {
  for (const openings of [1, 8, 9, 12]) {
    const dir = tempDir();
    const { store, errors } = await openStore(dir);
    await store.create(record("a"));
    takeForDead(dir, 1);
    for (let index = 0; index < openings; index += 1) {
      const { store: later } = await openStore(dir);
      await later.create(record(`later-${index}`));
      await later.close();
    }
    expect(await codeOf(store.create(record("b"))), `${openings} openings`).toBe("store_unavailable");
    expect(await codeOf(store.create(record("b")))).toBe("store_locked");
    await store.close();
    expect(errors).toHaveLength(1);
    const { store: now } = await openStore(dir);
    expect(await now.get("b")).toBeUndefined();
  }
});

test("a store whose directory was removed acknowledges nothing more", async () => {
  const dir = tempDir();
  const { store } = await openStore(dir);
  await store.create(record("a"));
  rmSync(dir, { recursive: true });
  expect(await codeOf(store.create(record("b")))).toBe("store_unavailable");
  expect(await codeOf(store.get("a"))).toBe("store_locked");
});

/** Whether the second owner has gone on in a third file. */
const hasBegunThird = (dir: string): boolean =>
  (segmentsIn(dir).toSorted().at(-1) ?? "") >= "segment-0000000002-0000000003.log";

for (const [where, scope] of [
  ["in the file it had", "q"],
  ["in a new file", "q".repeat(4_000)],
] as const) {
  test(`what an owner wrote ${where} after it was taken for dead does not come back when the next one compacts`, async () => {
    const dir = tempDir();
    let resume = (): void => {};
    let isPaused = false;
    let isWaiting = false;
    const pause = new Promise<void>((resolve) => (resume = resolve));
    const files = wrappedFiles(async ({ name, path, flags }, run) => {
      if (isPaused && isSegment(path) && (name === "file.write" || (name === "open" && flags === "wx+"))) {
        isWaiting = true;
        await pause;
      }
      return run();
    });
    const tiny = { segmentBytes: 4 * 1024, compactionFloorBytes: 2_000 };
    const { store: old } = await openStore(dir, { ...tiny, files });
    await old.create(record("t", { scope: "truth" }));
    isPaused = true;
    const rejected = codeOf(old.update("t", { scope }, 1));
    await waitUntil(() => isWaiting, "the write has come to the disk");

    takeForDead(dir, 1);
    const { store } = await openStore(dir, tiny);
    await store.create(record("x"));
    const first = segmentsIn(dir).find((name) => name.includes("segment-0000000002")) ?? "";
    resume();
    expect(await rejected).toBe("store_unavailable");
    await old.close();
    const isKept = where === "in the file it had";
    const gone = isKept ? first.replace("01.log", "02.log") : first;
    await churnUntil(store, () => hasBegunThird(dir) && !segmentsIn(dir).includes(gone), "a file is gone");
    expect((await store.get("t"))?.scope).toBe("truth");
    await store.close();

    expect(segmentsIn(dir).includes(first)).toBe(isKept);
    expect(readdirSync(dir).includes("quarantine")).toBe(!isKept);
    const { store: again, errors } = await openStore(dir);
    expect(await again.get("t")).toEqual(record("t", { scope: "truth" }));
    expect(errors).toEqual([]);
  });
}
