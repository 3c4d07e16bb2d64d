import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { WalTaskStore } from "../../src/index.ts";
import { record } from "./records.ts";
import { waitUntil } from "./wait-until.ts";
import { isSegment } from "./wrapped-files.ts";

/** Files so small that a few writes fill them. */
export const small = { segmentBytes: 16 * 1024, compactionFloorBytes: 16 * 1024 };

export const segmentsIn = (dir: string): string[] => readdirSync(dir).filter(isSegment);
export const bytesIn = (dir: string): number =>
  segmentsIn(dir).reduce((sum, name) => sum + statSync(join(dir, name)).size, 0);

/** Writes the same few tasks again and again, so that nearly everything on disk is superseded. */
export async function churn(store: WalTaskStore, updates: number): Promise<void> {
  for (let index = 0; index < 4; index += 1) {
    const taskId = `churn-${index}`;
    let version = (await store.get(taskId))?.version;
    if (version === undefined) await store.create(record(taskId));
    version ??= 1;
    for (let done = 0; done < updates; done += 1)
      version = await store.update(taskId, { progress: { done } }, version);
  }
}

/** Keeps writing until compaction has done something: it runs beside the writes, when they leave enough behind. */
export async function churnUntil(store: WalTaskStore, fact: () => boolean, message: string): Promise<void> {
  for (let round = 0; round < 100 && !fact(); round += 1) await churn(store, 30);
  await waitUntil(fact, message);
}
