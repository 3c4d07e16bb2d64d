// Run by a test, and shown in the guide.
import { RedisTaskStore } from "@longjobs/store-redis";
// #region wait-for-replicas
import { Redis } from "ioredis";

/** A client whose scripts resolve when so many replicas have what they wrote. Else they reject: it may get lost. */
function waitingForReplicas(client: Redis, replicas: number, timeoutMs: number): Redis {
  const afterReplicas = async (script: Promise<unknown>): Promise<unknown> => {
    // Sent together with the script: one round trip, and the time that the replicas take.
    const [reply, reached] = await Promise.all([script, client.wait(replicas, timeoutMs)]);
    if (reached < replicas) throw new Error(`${reached} replicas of ${replicas} have it.`);
    return reply;
  };
  const waiting: Redis = Object.create(client);
  return Object.assign(waiting, {
    evalsha: (sha1: string, keyCount: number, ...rest: string[]) =>
      afterReplicas(client.evalsha(sha1, keyCount, ...rest)),
    eval: (source: string, keyCount: number, ...rest: string[]) =>
      afterReplicas(client.eval(source, keyCount, ...rest)),
  }) as Redis;
}
// #endregion

const primary = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379", { maxRetriesPerRequest: 0 });
const store = new RedisTaskStore({ client: waitingForReplicas(primary, 1, 500), keyPrefix: "waiting" });
const reached = await store.sweep().then(
  () => "there",
  (error: { code?: string }) => error.code,
);
console.log(reached);
await store.close();
primary.disconnect();
