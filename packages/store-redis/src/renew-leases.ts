import type { HeldLease } from "@longjobs/core";
import { byShard, onEachShard } from "./by-shard.ts";
import { renewLeases as script } from "./lua/renew-leases.ts";
import { indexesKeptChanging } from "./redis-errors.ts";
import type { StoreContext } from "./store-context.ts";
import { placeOf, type TaskPlace } from "./store-keys.ts";
import { tokenArgument } from "./task-fields.ts";

/** More would keep a server from others for longer than a millisecond or two. */
const MOST_AT_ONCE = 500;

/** An index can change between two attempts only when its task gets another tool: twice in a row is unheard of. */
const MOST_ATTEMPTS = 3;

type Lease = TaskPlace & HeldLease;

/** Moves the deadline of each lease, all shards at once; resolves to the ids of those that are lost (C29, C30). */
export async function renewLeases(
  context: StoreContext,
  leases: readonly HeldLease[],
  leaseMs: number,
): Promise<string[]> {
  const lost: string[] = [];
  let left: Lease[] = leases.map((lease) => ({ ...lease, ...placeOf(lease.taskId) }));
  for (let attempt = 0; left.length > 0; attempt += 1) {
    if (attempt === MOST_ATTEMPTS) throw indexesKeptChanging(left.map(({ taskId }) => taskId));
    const chunks = Array.from(byShard(left).values()).flatMap(inChunks);
    const unknown: Lease[] = [];
    await onEachShard(chunks.keys(), async (position) => {
      const chunk = chunks[position] ?? [];
      const answers = await renewChunk(context, chunk, leaseMs);
      for (const [index, lease] of chunk.entries()) {
        // A client may be set to give numbers as texts; no index has such a name.
        const answer = String(answers[index]);
        if (answer === "0") lost.push(lease.taskId);
        else if (answer !== "1") {
          context.indexes.learn([answer]);
          unknown.push(lease);
        }
      }
    });
    left = unknown;
  }
  return lost;
}

/** Leases of one shard. Resolves to what the script says of each. */
async function renewChunk(
  { runner, keys, indexes }: StoreContext,
  leases: readonly Lease[],
  leaseMs: number,
): Promise<readonly (number | string)[]> {
  const { names } = indexes;
  const shard = leases[0]?.shard ?? 0;
  const reply = await runner.run(
    script,
    [
      ...leases.map(({ member }) => keys.task(shard, member)),
      ...names.map((name) => keys.index(shard, name)),
    ],
    [
      String(leaseMs),
      String(leases.length),
      ...leases.flatMap(({ token, member }) => [tokenArgument(token), member]),
      ...names,
    ],
  );
  return reply as (number | string)[];
}

function inChunks(leases: Lease[]): Lease[][] {
  const chunks: Lease[][] = [];
  for (let start = 0; start < leases.length; start += MOST_AT_ONCE) {
    chunks.push(leases.slice(start, start + MOST_AT_ONCE));
  }
  return chunks;
}
