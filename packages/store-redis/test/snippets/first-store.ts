// Run by a test, and shown in the README.
// #region first-store
import { RedisTaskStore } from "@longjobs/store-redis";
import { Redis } from "ioredis";

const client = new Redis(process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379", { maxRetriesPerRequest: 0 });
const store = new RedisTaskStore({ client });

const now = new Date().toISOString();
await store.create({
  taskId: "report-1",
  version: 1,
  status: "working",
  createdAt: now,
  lastUpdatedAt: now,
  ttlMs: 86_400_000,
  attempt: 1,
  crashes: 0,
  retentionMs: 86_400_000,
});
await store.update("report-1", { status: "completed", result: { content: [] } }, 1);
console.log((await store.get("report-1"))?.status); // completed

await store.close();
client.disconnect();
// #endregion
