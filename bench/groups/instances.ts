import { summarise } from "../measure.ts";
import { toRatio, type BenchGroup, type Row } from "../row.ts";
import { postgresPair, redisPair, type EnginePair } from "../subjects/engine-pair.ts";
import { findPostgres, inSchema } from "../subjects/postgres.ts";
import { findRedis, underPrefix } from "../subjects/redis.ts";

/** The engine's and the stores' default, in milliseconds. */
const pollMs = 1_000;

/** How long a cancel and an answer take from one instance to the worker in another. */
export const instances: BenchGroup = async function* ({ full, progress }) {
  const [redisUrl, postgresUrl] = await Promise.all([findRedis(), findPostgres()]);
  const measure = async (pair: EnginePair, store: string, notifies: boolean): Promise<Row[]> => {
    progress(`reaching a worker, ${store}`);
    const rounds = (notifies ? 100 : 20) * (full ? 5 : 1);
    try {
      return [
        toRow("a cancel", store, notifies, await timeAll(pair, rounds, notifies, timeCancel)),
        toRow("an answer", store, notifies, await timeAll(pair, rounds, notifies, timeAnswer)),
      ];
    } finally {
      await pair.close();
    }
  };
  for (const notifies of [true, false]) {
    if (redisUrl === undefined) progress("Redis: skipped, no server answers (LONGJOBS_REDIS_URL)");
    else {
      const store = notifies ? "Redis" : "Redis without notifications";
      yield* await underPrefix(redisUrl, (prefix) =>
        measure(redisPair(redisUrl, prefix, notifies), store, notifies),
      );
    }
    if (postgresUrl === undefined) progress("Postgres: skipped, no server answers (LONGJOBS_POSTGRES_URL)");
    else {
      const store = notifies ? "Postgres with listen" : "Postgres without listen";
      yield* await inSchema(postgresUrl, async (schema) =>
        measure(await postgresPair(postgresUrl, schema, notifies), store, notifies),
      );
    }
  }
};

function toRow(what: string, store: string, notifies: boolean, timesMs: readonly number[]): Row {
  const figure = summarise(timesMs);
  const bar = notifies ? 20 : pollMs + 50;
  return {
    group: "instances",
    row: `${what} reaches the worker in another instance, ${store}`,
    unit: "ms",
    figures: { longjobs: figure },
    ratios: [toRatio(notifies ? "median" : "longest", notifies ? figure.median : figure.max, "at most", bar)],
  };
}

/** One after the other where it takes a moment; where the next look is waited for, together, each at a time of its own. */
async function timeAll(
  pair: EnginePair,
  rounds: number,
  notifies: boolean,
  timeOne: (pair: EnginePair) => Promise<number>,
): Promise<number[]> {
  const times: number[] = [];
  if (notifies) for (let round = 0; round < rounds; round += 1) times.push(await timeOne(pair));
  else {
    const spread = Array.from({ length: rounds }, async (_, round) => {
      await new Promise((resolve) => setTimeout(resolve, (round * 2 * pollMs) / rounds));
      return timeOne(pair);
    });
    times.push(...(await Promise.all(spread)));
  }
  return times;
}

async function timeCancel({ worker, other }: EnginePair): Promise<number> {
  const { taskId } = await worker.createTask();
  const handle = worker.handle(taskId);
  const told = new Promise<number>((resolve) => {
    handle.signal.addEventListener("abort", () => resolve(performance.now()), { once: true });
  });
  const sentMs = performance.now();
  await other.cancelTask(taskId);
  const toldMs = await told;
  await handle.cancelled();
  return toldMs - sentMs;
}

async function timeAnswer({ worker, other }: EnginePair): Promise<number> {
  const client = { capabilities: { elicitation: { form: {} } } };
  const { taskId } = await worker.createTask({ work: { tool: "ask", arguments: {}, client } });
  const handle = worker.handle(taskId);
  const answered = handle
    .requestInput({
      name: { method: "elicitation/create", params: { message: "Who?", requestedSchema: {} } },
    })
    .then(() => performance.now());
  const key = await openKey(other, taskId);
  const sentMs = performance.now();
  await other.updateTask(taskId, { [key]: { action: "accept", content: {} } });
  const answeredMs = await answered;
  await handle.complete({ content: [] });
  return answeredMs - sentMs;
}

async function openKey(engine: EnginePair["other"], taskId: string): Promise<string> {
  let task = await engine.getTask(taskId);
  while (task.status === "working") {
    const { lastUpdatedAt, status } = task;
    task = await engine.waitForChange(taskId, { seen: { lastUpdatedAt, status } });
  }
  if (task.status !== "input_required") throw new Error(`The task is ${task.status}.`);
  return Object.keys(task.inputRequests)[0] ?? "";
}
