import { newLease, reportBackgroundError, type ClaimOptions, type TaskRecord } from "@longjobs/core";
import { byShard, onEachShard } from "./by-shard.ts";
import { decodeText } from "./encode-text.ts";
import { CANCELLED_INDEX, indexOfTool } from "./lease-indexes.ts";
import { claimTask } from "./lua/claim-task.ts";
import { findClaimable } from "./lua/find-claimable.ts";
import { listIndexes } from "./lua/list-indexes.ts";
import { locateTasks } from "./lua/locate-tasks.ts";
import type { StoreContext } from "./store-context.ts";
import { placeOf, shards, type TaskPlace } from "./store-keys.ts";
import { readRecord, tokenArgument } from "./task-fields.ts";

/** A task that nobody seemed to hold, and the index it was in then. */
interface Candidate extends TaskPlace {
  readonly index: string;
}

/** Enough for a busy shard; what is left is found in the next round. */
const MOST_OF_AN_INDEX = 16;

/**
 * Takes open tasks that nobody holds: candidates first, from the indexes or by their ids, then one script per
 * candidate, which looks at the deadline again. Who loses a race for one goes on to the next.
 */
export class TaskClaims {
  readonly #context: StoreContext;

  constructor(context: StoreContext) {
    this.#context = context;
  }

  async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    const claimed: TaskRecord[] = [];
    try {
      await this.#claimInto(claimed, owner, leaseMs, options);
    } catch (error) {
      // What was claimed is the caller's to run; only without any is the failure the answer.
      if (claimed.length === 0) throw error;
      reportBackgroundError(error, this.#context.onError);
    }
    return claimed;
  }

  async #claimInto(
    claimed: TaskRecord[],
    owner: string,
    leaseMs: number,
    options: ClaimOptions,
  ): Promise<void> {
    const { limit, tools, taskIds } = options;
    const wanted = tools && [CANCELLED_INDEX, ...new Set(tools.map(indexOfTool))];
    const claimSome = async (candidates: readonly Candidate[]): Promise<void> => {
      for (let next = 0; next < candidates.length && claimed.length < limit;) {
        const wave = candidates.slice(next, next + limit - claimed.length);
        next += wave.length;
        await this.#claimAll(claimed, owner, leaseMs, wave);
      }
    };
    if (taskIds !== undefined) {
      const located = await this.#locate(new Set(taskIds));
      return claimSome(located.filter(({ index }) => wanted === undefined || wanted.includes(index)));
    }
    if (wanted === undefined) await this.#learnIndexes();
    while (claimed.length < limit) {
      const mostOfEach = Math.min(limit - claimed.length, MOST_OF_AN_INDEX);
      const candidates = await this.#find(wanted ?? this.#context.indexes.names, mostOfEach);
      if (candidates.length === 0) return;
      // Afterwards each is claimed, or its entry says when to look again: the next round finds others.
      await claimSome(candidates);
    }
  }

  /** Tries these at once. @throws what the first failure was, after all have settled */
  async #claimAll(
    claimed: TaskRecord[],
    owner: string,
    leaseMs: number,
    candidates: readonly Candidate[],
  ): Promise<void> {
    const outcomes = await Promise.allSettled(candidates.map((task) => this.#claimOne(owner, leaseMs, task)));
    for (const outcome of outcomes) {
      if (outcome.status === "fulfilled" && outcome.value !== undefined) claimed.push(outcome.value);
    }
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }

  async #claimOne(
    owner: string,
    leaseMs: number,
    { taskId, member, shard, index }: Candidate,
  ): Promise<TaskRecord | undefined> {
    const lease = newLease(owner, leaseMs);
    const reply = await this.#context.runner.run(
      claimTask,
      [this.#context.keys.task(shard, member), this.#context.keys.index(shard, index)],
      [member, index, JSON.stringify(lease), String(leaseMs), tokenArgument(lease.token)],
    );
    return readRecord(taskId, reply);
  }

  /** Tasks whose lease has lapsed, of all shards. In no order, so that claimers at work at once rarely meet. */
  async #find(names: readonly string[], mostOfEach: number): Promise<Candidate[]> {
    const found = await onEachShard(shards, async (shard) => {
      const keys = names.map((name) => this.#context.keys.index(shard, name));
      const members = await this.#context.runner.run<string[][]>(findClaimable, keys, [String(mostOfEach)]);
      return names.flatMap((index, position) =>
        (members[position] ?? []).map((member) => ({ taskId: decodeText(member), member, shard, index })),
      );
    });
    return shuffle(found.flat());
  }

  async #locate(taskIds: Iterable<string>): Promise<Candidate[]> {
    const groups = byShard(Array.from(taskIds, placeOf));
    const located = await onEachShard(groups.keys(), async (shard) => {
      const places = groups.get(shard) ?? [];
      const keys = places.map(({ member }) => this.#context.keys.task(shard, member));
      const names = await this.#context.runner.run<(string | null)[]>(locateTasks, keys, []);
      return places.flatMap((place, position) => {
        const index = names[position];
        return index == null ? [] : [{ ...place, index }];
      });
    });
    return located.flat();
  }

  async #learnIndexes(): Promise<void> {
    const found = await onEachShard(shards, (shard) =>
      this.#context.runner.run(listIndexes, [this.#context.keys.indexNames(shard)], []),
    );
    this.#context.indexes.learn((found as string[][]).flat());
  }
}

function shuffle<Value>(values: Value[]): Value[] {
  for (let last = values.length - 1; last > 0; last -= 1) {
    const other = Math.floor(Math.random() * (last + 1));
    [values[last], values[other]] = [values[other] as Value, values[last] as Value];
  }
  return values;
}
