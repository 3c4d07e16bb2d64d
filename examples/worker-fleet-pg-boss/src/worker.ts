/* Runs the tasks that the queue delivers, a few at a time, and goes on with those whose worker is gone. */
import { closeOnSigterm } from "@longjobs/example-worker-fleet/serve";
import { registerTools } from "@longjobs/example-worker-fleet/tools";
import { createTasks } from "@longjobs/tasks";
import { connect, queue, type Job } from "./connect.ts";

const { boss, close, store } = await connect();
const leaseMs = Number(process.env["LEASE_MS"] ?? 30_000);
const tasks = createTasks({ store, scope: null, leaseMs, maxConcurrentRuns: 4 });
registerTools(tasks, (step) => process.send?.({ step }));

await boss.work<Job>(queue, { pollingIntervalSeconds: 0.5, localConcurrency: 4 }, async ([job]) => {
  // Rejects while another worker runs the task: the queue delivers it again, and finds it done.
  if (job !== undefined) await tasks.run(job.data.taskId);
});
process.send?.({ ready: true });
closeOnSigterm(tasks, close);
