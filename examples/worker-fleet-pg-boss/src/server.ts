/* Accepts calls and answers for them; the work is done by the workers. */
import { closeOnSigterm, serve } from "@longjobs/example-worker-fleet/serve";
import { registerTools } from "@longjobs/example-worker-fleet/tools";
import { createTasks } from "@longjobs/tasks";
import { connect, jobId, queue } from "./connect.ts";

const { boss, close, store } = await connect();
const tasks = createTasks({
  store,
  // One user: everyone who can reach this server shares its tasks.
  scope: null,
  pollIntervalMs: 200,
  leaseMs: Number(process.env["LEASE_MS"] ?? 30_000),
  executor: {
    submit: async ({ taskId, attempt }) => {
      await boss.send(queue, { taskId }, { id: jobId(taskId, attempt) });
    },
  },
});
registerTools(tasks);
serve(tasks);
closeOnSigterm(tasks, close);
