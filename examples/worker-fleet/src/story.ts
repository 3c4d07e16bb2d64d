/*
 * What every fleet is shown to do, whatever queue delivers its work: a worker is killed in the middle of its work, and another
 * one is started. Every task ends with its result, and none is run twice at once.
 */
import assert from "node:assert/strict";
import { callTool, until } from "./client.ts";
import { startProcess, type DemoProcess } from "./demo-process.ts";
import type { Step } from "./tools.ts";

/** The programs of a fleet, and what they are told. */
export interface Fleet {
  readonly server: URL;
  readonly worker: URL;
  readonly env: { readonly [name: string]: string };
}

const count = 20;
const pages = 12;

/** Tells the story, step by step, and asserts each. */
export async function tellFleetStory({
  env,
  server: serverProgram,
  worker: workerProgram,
}: Fleet): Promise<void> {
  const steps: Step[] = [];
  const processes: DemoProcess[] = [];
  const begin = async (program: URL): Promise<DemoProcess> => {
    const started = await startProcess(program, { LEASE_MS: "2000", ...env }, ({ step }) => {
      if (step !== undefined) steps.push(step);
    });
    processes.push(started);
    return started;
  };
  try {
    const server = await begin(serverProgram);
    const doomed = await begin(workerProgram);
    const workers = [doomed, await begin(workerProgram), await begin(workerProgram)];
    say(`The server is process ${server.pid} on port ${server.port}; the workers are ${list(workers)}.`);

    const ids = await Promise.all(
      Array.from({ length: count }, () => callTool(server.port, "index_site", { pages })),
    );
    say(`${count} calls were accepted as tasks, each ${pages} pages long.`);

    await doomed.waitFor(({ step }) => step !== undefined && step.page >= 4);
    await doomed.kill();
    const fresh = await begin(workerProgram);
    say(`kill -9 ${doomed.pid}, a worker in the middle of its work. Process ${fresh.pid} takes its place.`);

    for (const task of await Promise.all(ids.map((taskId) => until(server.port, taskId)))) {
      assert.equal(task.status, "completed");
      assert.deepEqual(task.result?.content, [{ type: "text", text: `Indexed ${pages} pages.` }]);
    }
    const moved = new Set(steps.filter(({ attempt }) => attempt > 1).map(({ taskId }) => taskId));
    assert.ok(moved.size > 0, "The killed worker should have left tasks behind.");
    assertOneAtATime(steps);
    say(
      `All ${count} tasks have their results. ${moved.size} of them changed their worker, each at its next page.`,
    );
  } finally {
    await Promise.all(processes.map((each) => each.kill()));
  }
  console.log("\nThe queue delivers, the lease decides: no task was lost, and none was run twice at once.");
}

/** Of each task: a later attempt never goes back, but for the page that was being read. */
function assertOneAtATime(steps: readonly Step[]): void {
  for (const taskId of new Set(steps.map((each) => each.taskId))) {
    let [attempt, page] = [0, 0];
    for (const each of steps.filter((one) => one.taskId === taskId)) {
      assert.ok(each.attempt >= attempt, "An earlier attempt worked on.");
      const again = each.attempt > attempt && each.page === page;
      assert.ok(each.page > page || again, "A saved page was read again.");
      ({ attempt, page } = each);
    }
  }
}

function list(all: readonly DemoProcess[]): string {
  return all.map(({ pid }) => pid).join(", ");
}

let said = 0;

function say(words: string): void {
  said += 1;
  console.log(`${said}. ${words}`);
}
