import { setTimeout as delay } from "node:timers/promises";

import type { InstanceProcess } from "../../examples/load-balanced/src/instance-process.ts";
import type { TcpProxy } from "../../packages/store-redis/test/support/tcp-proxy.ts";
import type { Backend } from "./backend.ts";
import type { Fault } from "./faults.ts";

/** What can happen to a fleet: to each instance, to its way to the backend, and to the backend itself. */
export function faultsOfFleet(
  backend: Backend,
  instances: readonly InstanceProcess[],
  ways: readonly TcpProxy[],
): readonly Fault[] {
  return [
    ...instances.flatMap((instance, index) => ofInstance(instance, `instance ${index}`)),
    // An instance that is away and its way have nothing to do with each other for that time.
    ...ways.flatMap((way, index) => ofWay(way, `instance ${index}`)),
    // There is one of it: it has its turn twice.
    ...ofBackend(backend),
    ...ofBackend(backend),
  ];
}

function ofInstance(instance: InstanceProcess, victim: string): Fault[] {
  return [
    {
      name: "an instance is killed",
      victim,
      longestMs: 1_000,
      begin: () => instance.kill(),
      mend: () => supervised(instance),
    },
    {
      name: "an instance sleeps",
      victim,
      longestMs: 4_000,
      begin: () => instance.pause(),
      mend: () => instance.resume(),
    },
    {
      name: "an instance is told to end",
      victim,
      longestMs: 1_000,
      begin: () => instance.stop(),
      mend: () => supervised(instance),
    },
  ];
}

function ofWay(way: TcpProxy, victim: string): Fault[] {
  const fault = (name: string, mode: TcpProxy["mode"]): Fault => ({
    name,
    victim,
    longestMs: 3_500,
    begin: () => {
      way.mode = mode;
    },
    mend: () => {
      way.mode = "open";
      // What was held back is lost, as it is on a network that was dead for long.
      way.reset();
    },
  });
  return [
    fault("a way to the backend breaks", "cut"),
    fault("a way to the backend is half open", "deaf"),
    fault("a way to the backend goes dead", "silent"),
  ];
}

function ofBackend(backend: Backend): Fault[] {
  const victim = "the backend";
  return [
    {
      name: "the backend is killed",
      victim,
      longestMs: 1_500,
      begin: () => backend.kill(),
      mend: () => backend.restart(),
    },
    {
      name: "the backend sleeps",
      victim,
      longestMs: 3_000,
      begin: () => backend.pause(),
      mend: () => backend.resume(),
    },
  ];
}

const startDeadlineMs = 60_000;

/** Starts an instance as a supervisor does: one that finds its backend away ends, and is started again. */
async function supervised(instance: InstanceProcess): Promise<void> {
  const endMs = performance.now() + startDeadlineMs;
  for (;;) {
    try {
      return await instance.start();
    } catch (error) {
      if (performance.now() > endMs) throw error;
      await delay(200);
    }
  }
}
