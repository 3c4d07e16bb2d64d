// Runs the built files: holds open tasks, a wait and a parked question, and must exit by itself all the same.
import { MemoryTaskStore, TaskLifecycle } from "../../dist/index.js";

const lifecycle = new TaskLifecycle({ store: new MemoryTaskStore(), retentionMs: 30 * 24 * 3_600_000 });
const { taskId, ttlMs } = await lifecycle.createTask();
void lifecycle.handle(taskId).requestInput({ a: { method: "roots/list" } });
void lifecycle.run(lifecycle.begin(), () => new Promise(() => undefined));
void lifecycle.waitForChange(taskId, { timeoutMs: 2 ** 31 - 1 });
console.log(JSON.stringify({ ttlMs, status: (await lifecycle.getTask(taskId)).status }));
