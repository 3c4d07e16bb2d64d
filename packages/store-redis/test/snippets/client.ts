// Run by a test, and shown in the guide.
// #region client
import { RedisTaskStore } from "@longjobs/store-redis";
import { Redis } from "ioredis";

const client = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379", {
  // A command that a broken connection cut off is told of at once, and never sent again later.
  maxRetriesPerRequest: 0,
  // A connection that is dead without saying so is replaced.
  socketTimeout: 5_000,
  // After a failover behind one address: away from the server that has become a replica.
  reconnectOnError: (error) => error.message.startsWith("READONLY"),
});
client.on("error", (error) => console.error(error.message));

const store = new RedisTaskStore({ client, onError: (error) => console.error(error) });
// #endregion

console.log(await store.sweep());
await store.close();
client.disconnect();
