import { isLongJobsError } from "@longjobs/core";
import type { ClosedLog, Progress } from "./closed-log.ts";
import { reportNobodys, reportSuperseded, reportTask, type DamageReport } from "./damage-report.ts";
import { segmentKey } from "./log-segment.ts";
import { QuarantineListing } from "./quarantine-listing.ts";
import { DamagedBytesError } from "./read-record.ts";
import type { CachedTask } from "./cached-task.ts";
import type { TaskEntry } from "./task-index.ts";

/** Read at the same time: enough to keep a disk busy, little enough for the memory. */
const SLICE_TASKS = 64;
const SLICE_BYTES = 8 * 1024 * 1024;

/** A task that was read as a store reads it: whole, or why not. */
export type ExaminedTask = { readonly taskId: string; readonly entry: TaskEntry } & (
  | { readonly task: CachedTask; readonly damage: null }
  | { readonly task: null; readonly damage: DamageReport }
);

/** Everything in a log that is not as it was written. */
export class Examination {
  /** In the order in which it was found. */
  readonly damage: DamageReport[] = [];
  healthyTasks = 0;
  damagedTasks = 0;
  readonly #log: ClosedLog;
  readonly #quarantine: QuarantineListing;

  private constructor(log: ClosedLog, quarantine: QuarantineListing) {
    this.#log = log;
    this.#quarantine = quarantine;
  }

  /** Begins with the damage that belongs to no readable task. */
  static async begin(log: ClosedLog): Promise<Examination> {
    const quarantine = await QuarantineListing.read(log.files, log.dir);
    const examination = new Examination(log, quarantine);
    await examination.#reportNameless();
    return examination;
  }

  /** Reads every task, in the order of the disk, with every large field. */
  async *tasks(onProgress: (progress: Progress) => void): AsyncGenerator<ExaminedTask> {
    const { index } = this.#log.replayed;
    const entries = [...index.named()].toSorted(
      ([, left], [, right]) =>
        segmentKey(left.segment) - segmentKey(right.segment) || left.offset - right.offset,
    );
    let done = 0;
    for (let from = 0; from < entries.length;) {
      const slice = takeSlice(entries, from);
      from += slice.length;
      for (const examined of await Promise.all(slice.map((named) => this.#examine(named)))) {
        if (examined.damage === null) this.healthyTasks += 1;
        else this.#countDamaged(examined.damage);
        yield examined;
      }
      done += slice.length;
      onProgress({ unit: "tasks", done, total: entries.length });
    }
  }

  async #examine([taskId, entry]: readonly [string, TaskEntry]): Promise<ExaminedTask> {
    if (entry.damage !== null) {
      const damage = await reportTask(taskId, entry, undefined, this.#quarantine);
      return { taskId, entry, task: null, damage };
    }
    try {
      return { taskId, entry, task: await this.#log.reader.readTask(taskId, entry), damage: null };
    } catch (error) {
      if (!(error instanceof DamagedBytesError) && !isLongJobsError(error, "record_corrupt")) throw error;
      const place = error instanceof DamagedBytesError ? error.place : entry;
      return { taskId, entry, task: null, damage: await reportTask(taskId, entry, place, this.#quarantine) };
    }
  }

  #countDamaged(damage: DamageReport): void {
    this.damagedTasks += 1;
    this.damage.push(damage);
  }

  async #reportNameless(): Promise<void> {
    const { index, verdict } = this.#log.replayed;
    for (const [, entry] of index.unnamed())
      this.#countDamaged(await reportTask(undefined, entry, undefined, this.#quarantine));
    for (const damage of verdict.nobodys) {
      const fileBytes = this.#log.sizes.get(damage.segment.name) ?? 0;
      this.damage.push(await reportNobodys(damage, fileBytes, this.#quarantine));
    }
    const hurting = new Set(verdict.hurt.map(({ damage }) => damage));
    for (const damage of verdict.superseded) {
      // A write that never ended is no damage, and a marker's bytes are gone; both were replaced since.
      if (damage.torn || damage.isMarker || hurting.has(damage)) continue;
      this.damage.push(await reportSuperseded(damage, this.#quarantine));
    }
  }
}

function takeSlice(
  entries: readonly (readonly [string, TaskEntry])[],
  from: number,
): (readonly [string, TaskEntry])[] {
  let bytes = 0;
  const slice = [];
  for (let at = from; at < entries.length && slice.length < SLICE_TASKS && bytes < SLICE_BYTES; at += 1) {
    const named = entries[at] as readonly [string, TaskEntry];
    bytes += named[1].bytes;
    for (const blob of named[1].blobs ?? []) bytes += blob.bytes;
    slice.push(named);
  }
  return slice;
}
