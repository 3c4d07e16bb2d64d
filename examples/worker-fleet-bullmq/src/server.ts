/* Accepts calls and answers for them; the work is done by the workers. */
import { closeOnSigterm, serve } from "@longjobs/example-worker-fleet/serve";
import { registerTools } from "@longjobs/example-worker-fleet/tools";
import { createTasks } from "@longjobs/tasks";
import { Queue } from "bullmq";
import { connect, queueName, queueOptions, type Job } from "./connect.ts";

const { close, store } = connect();
const queue = new Queue<Job>(queueName, queueOptions);
const tasks = createTasks({
  store,
  // One user: everyone who can reach this server shares its tasks.
  scope: null,
  pollIntervalMs: 200,
  leaseMs: Number(process.env["LEASE_MS"] ?? 30_000),
  executor: {
    submit: async ({ taskId, tool, attempt }) => {
      await queue.add(
        tool,
        { taskId },
        {
          // The same task and attempt are the same job, while it is there.
          jobId: `${taskId}-${attempt}`,
          // Redelivery is the queue's: often enough to outlive every lease. A task runs once at a time, however often it comes.
          attempts: 100,
          backoff: { type: "fixed", delay: 1_000 },
          removeOnComplete: true,
          removeOnFail: true,
        },
      );
    },
  },
});
registerTools(tasks);
serve(tasks);
closeOnSigterm(tasks, async () => {
  await queue.close();
  await close();
});
