/**
 * One call per shard, all sent together. Waits for the last before it rejects, so that nothing is under way when
 * its caller hears of a failure.
 */
export async function onEachShard<Result>(
  shards: Iterable<number>,
  call: (shard: number) => Promise<Result>,
): Promise<Result[]> {
  const outcomes = await Promise.allSettled(Array.from(shards, call));
  return outcomes.map((outcome) => {
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
}

/** What belongs to one shard, by shard. */
export function byShard<Member extends { readonly shard: number }>(
  members: Iterable<Member>,
): ReadonlyMap<number, Member[]> {
  const groups = new Map<number, Member[]>();
  for (const member of members) {
    const group = groups.get(member.shard);
    if (group === undefined) groups.set(member.shard, [member]);
    else group.push(member);
  }
  return groups;
}
