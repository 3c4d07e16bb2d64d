import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Fleet, type StartOptions } from "./fleet.ts";
import { mostProcesses, type StorePlace } from "./open-store.ts";

/** A place for the tasks of one test, and what removes it. */
export interface FreshPlace {
  readonly place: StorePlace;
  readonly remove: () => Promise<void>;
}

/** The processes of one test. */
export interface Scene {
  readonly fleet: Fleet;
  /** The file that its processes bear witness in. */
  readonly witness: string;
  /** How many processes may use the store at once. */
  readonly most: number;
  /** Starts as many as may live beside one that is going to be killed: none on a store of one process. */
  readonly startNeighbours: (options?: StartOptions) => Promise<readonly number[]>;
  /** Who goes on after a process has ended: a neighbour of it, else the next process on its port. */
  readonly successor: (port: number) => Promise<number>;
}

/** Short: what a killed process held is free after it. */
const leaseMs = 600;

/** Sets scenes up, each on a place of its own. */
export class Scenes {
  readonly #freshPlace: () => Promise<FreshPlace>;
  readonly #open: { readonly fleet: Fleet; readonly dir: string; readonly remove: () => Promise<void> }[] =
    [];

  constructor(freshPlace: () => Promise<FreshPlace>) {
    this.#freshPlace = freshPlace;
  }

  async setUp(): Promise<Scene> {
    const { place, remove } = await this.#freshPlace();
    const dir = await mkdtemp(join(tmpdir(), "longjobs-fleet-"));
    const witness = join(dir, "witness");
    await writeFile(witness, "");
    const fleet = new Fleet({ place, witness, leaseMs });
    this.#open.push({ fleet, dir, remove });
    const most = mostProcesses[place.kind];
    return {
      fleet,
      witness,
      most,
      startNeighbours: (options) => Promise.all(Array.from({ length: most - 1 }, () => fleet.start(options))),
      successor: async (port) =>
        fleet.ports.find((other) => other !== port && fleet.lives(other)) ?? fleet.start({ port }),
    };
  }

  /** Ends every scene. What a failed test has left is kept, and said where. */
  async close(succeeded: boolean): Promise<void> {
    for (const { fleet, dir, remove } of this.#open.splice(0)) {
      await fleet.killAll();
      if (succeeded) await Promise.all([remove(), rm(dir, { recursive: true })]);
      else console.log(`The witness of the failed test: ${dir}`);
    }
  }
}
