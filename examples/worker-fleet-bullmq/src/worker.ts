/* Runs the tasks that the queue delivers, a few at a time, and goes on with those whose worker is gone. */
import { closeOnSigterm } from "@longjobs/example-worker-fleet/serve";
import { registerTools } from "@longjobs/example-worker-fleet/tools";
import { createTasks } from "@longjobs/tasks";
import { Worker } from "bullmq";
import { connect, queueName, queueOptions, type Job } from "./connect.ts";

const { close, store } = connect();
const leaseMs = Number(process.env["LEASE_MS"] ?? 30_000);
const tasks = createTasks({ store, scope: null, leaseMs, maxConcurrentRuns: 4 });
registerTools(tasks, (step) => process.send?.({ step }));

// Rejects while another worker runs the task: the queue delivers it again, and finds it done.
const worker = new Worker<Job>(queueName, async ({ data }) => void (await tasks.run(data.taskId)), {
  ...queueOptions,
  concurrency: 4,
});
worker.on("error", console.error);
await worker.waitUntilReady();
process.send?.({ ready: true });
closeOnSigterm(tasks, async () => {
  await worker.close();
  await close();
});
