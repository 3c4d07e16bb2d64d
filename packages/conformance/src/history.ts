import { isLongJobsError } from "@longjobs/core";

import { expectThat } from "./expect.ts";

/** What became of a write. `ambiguous`: it failed in a way that leaves open whether it was committed. */
export type WriteOutcome = "acknowledged" | "refused" | "ambiguous";

/** One write of a recorded history, from its call (`begin`) to its answer (`end`) on one common counter. */
export interface RecordedWrite {
  readonly kind: "write";
  /** Unique: what a reader sees when this write is the latest. */
  readonly mark: string;
  readonly expectedVersion: number;
  readonly outcome: WriteOutcome;
  readonly begin: number;
  readonly end: number;
}

/** One read of a recorded history. */
export interface RecordedRead {
  readonly kind: "read";
  readonly version: number;
  readonly mark: string;
  readonly begin: number;
  readonly end: number;
}

export type HistoryEvent = RecordedWrite | RecordedRead;

/** Records what writers and readers of one task did, for {@link findHistoryFaults}. */
export class TaskHistory {
  readonly events: HistoryEvent[] = [];
  #now = 0;

  /** Records one compare-and-swap; never rejects. */
  async write(mark: string, expectedVersion: number, update: () => Promise<number>): Promise<WriteOutcome> {
    const begin = this.#tick();
    const outcome = await update().then(() => "acknowledged" as const, outcomeOf);
    this.events.push({ kind: "write", mark, expectedVersion, outcome, begin, end: this.#tick() });
    return outcome;
  }

  /**
   * Records a write that says itself what it made, such as a claim: `acquire` resolves to the version and the
   * mark, or to `undefined` when there was nothing to write.
   */
  async acquire(
    acquire: () => Promise<{ readonly version: number; readonly mark: string } | undefined>,
  ): Promise<void> {
    const begin = this.#tick();
    const made = await acquire();
    if (made === undefined) return;
    const { version, mark } = made;
    const write = { kind: "write", mark, expectedVersion: version - 1, outcome: "acknowledged" } as const;
    this.events.push({ ...write, begin, end: this.#tick() });
  }

  /** Records one read of the version and the mark that the task shows. */
  async read(get: () => Promise<{ readonly version: number; readonly mark: string }>): Promise<RecordedRead> {
    const begin = this.#tick();
    const { version, mark } = await get();
    const read: RecordedRead = { kind: "read", version, mark, begin, end: this.#tick() };
    this.events.push(read);
    return read;
  }

  #tick(): number {
    this.#now += 1;
    return this.#now;
  }
}

/**
 * What is impossible in a recorded history, a sentence each: every version has one writer, no write that was
 * refused is ever seen, reads never go back, an acknowledged write is there, and an ambiguous one either
 * happened or did not.
 *
 * @param birth - The version and the mark with which the task was created.
 * @param events - At the end there must be a read that began after every write had ended.
 */
export function findHistoryFaults(
  birth: { readonly version: number; readonly mark: string },
  events: readonly HistoryEvent[],
): string[] {
  const writes = events.filter((event) => event.kind === "write");
  const reads = events.filter((event) => event.kind === "read");
  return [
    ...findTwoWriters(writes),
    ...findForeignMarks(birth, writes, reads),
    ...findGoingBack(writes, reads),
    ...findGaps(birth.version, writes, reads),
  ];
}

/** Fails with the first faults of an impossible history. */
export function expectPossibleHistory(
  birth: { readonly version: number; readonly mark: string },
  events: readonly HistoryEvent[],
): void {
  const faults = findHistoryFaults(birth, events);
  expectThat(faults.length === 0, `The history is impossible. ${faults.slice(0, 3).join(" ")}`);
}

function outcomeOf(error: unknown): WriteOutcome {
  const refused = ["version_conflict", "unknown_task", "record_too_large", "store_closed"];
  return refused.some((code) => isLongJobsError(error, code)) ? "refused" : "ambiguous";
}

function findTwoWriters(writes: readonly RecordedWrite[]): string[] {
  const faults: string[] = [];
  const winners = new Map<number, string>();
  for (const { mark, expectedVersion, outcome } of writes) {
    if (outcome !== "acknowledged") continue;
    const other = winners.get(expectedVersion);
    if (other !== undefined)
      faults.push(`Version ${expectedVersion + 1} was acknowledged to ${other} and to ${mark}.`);
    winners.set(expectedVersion, mark);
  }
  return faults;
}

/** A version shows the mark of the one write that made it. */
function findForeignMarks(
  birth: { readonly version: number; readonly mark: string },
  writes: readonly RecordedWrite[],
  reads: readonly RecordedRead[],
): string[] {
  const faults: string[] = [];
  const makers = new Map<number, string>([[birth.version, birth.mark]]);
  for (const { mark, expectedVersion, outcome } of writes) {
    if (outcome === "acknowledged") makers.set(expectedVersion + 1, mark);
  }
  for (const { version, mark } of reads) {
    const maker = makers.get(version) ?? ambiguousMaker(writes, version, mark);
    if (maker !== mark)
      faults.push(`A reader saw ${mark} at version ${version}, which ${maker ?? "nobody"} wrote.`);
    makers.set(version, mark);
  }
  return faults;
}

function ambiguousMaker(writes: readonly RecordedWrite[], version: number, mark: string): string | undefined {
  return writes.find(
    (write) => write.outcome === "ambiguous" && write.expectedVersion === version - 1 && write.mark === mark,
  )?.mark;
}

/** A read shows at least what was acknowledged, or read by anyone, before it began. */
function findGoingBack(writes: readonly RecordedWrite[], reads: readonly RecordedRead[]): string[] {
  const known = [
    ...reads.map(({ version, end }) => ({ version, end })),
    ...writes
      .filter(({ outcome }) => outcome === "acknowledged")
      .map(({ expectedVersion, end }) => ({ version: expectedVersion + 1, end })),
  ].toSorted((left, right) => left.end - right.end);
  const faults: string[] = [];
  let newest = -Infinity;
  let next = 0;
  for (const { version, begin } of reads.toSorted((left, right) => left.begin - right.begin)) {
    for (; (known[next]?.end ?? Infinity) < begin; next += 1)
      newest = Math.max(newest, known[next]?.version ?? 0);
    if (version < newest)
      faults.push(`A reader saw version ${version} after version ${newest} had been seen.`);
  }
  return faults;
}

/** Each version up to the last one has a writer that was acknowledged, or one that may have happened. */
function findGaps(
  birthVersion: number,
  writes: readonly RecordedWrite[],
  reads: readonly RecordedRead[],
): string[] {
  const last = reads.toSorted((left, right) => left.begin - right.begin).at(-1)?.version ?? birthVersion;
  const faults: string[] = [];
  for (let version = birthVersion + 1; version <= last; version += 1) {
    const possible = writes.some(
      (write) => write.expectedVersion === version - 1 && write.outcome !== "refused",
    );
    if (!possible) faults.push(`Nobody can have written version ${version}.`);
  }
  return faults;
}
