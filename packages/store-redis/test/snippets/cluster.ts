// Run by a test, and shown in the guide.
// #region cluster
import { RedisTaskStore } from "@longjobs/store-redis";
import { Cluster } from "ioredis";

const client = new Cluster([process.env["REDIS_URL"] ?? "redis://127.0.0.1:7000"], {
  redisOptions: { socketTimeout: 5_000 },
});
client.on("error", (error) => console.error(error.message));

const store = new RedisTaskStore({ client });
// #endregion

console.log(await store.sweep());
await store.close();
client.disconnect();
