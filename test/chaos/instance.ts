/*
 * An instance of the load-balanced example whose tools write down what they do. What it reports in the background goes to its
 * witness too.
 */
import { canLease, type TaskStore } from "@longjobs/core";

import { openStore, placeFromEnv } from "../../examples/load-balanced/src/open-store.ts";
import { runInstance } from "../../examples/load-balanced/src/run-instance.ts";
import { bearWitness } from "../recovery/witness.ts";
import { registerChaosTools } from "./tools.ts";

const witness = process.env["WITNESS"] ?? "";
let owner = "";

const opened = await openStore(placeFromEnv());
noteOwner(opened.store);
await runInstance(opened, {
  drainMs: 300,
  register: (tasks) =>
    registerChaosTools(
      tasks,
      (sight) => bearWitness(witness, sight),
      () => owner,
    ),
  onError: (error) => bearWitness(witness, { did: "reported", reason: describe(error) }),
});

/** Under which name the engine of this process holds leases: it says so whenever it creates or claims. */
function noteOwner(store: TaskStore): void {
  const create = store.create.bind(store);
  store.create = (record) => {
    owner = record.lease?.owner ?? owner;
    return create(record);
  };
  if (!canLease(store)) throw new Error("A store of a fleet can lease.");
  const claim = store.claim.bind(store);
  store.claim = (name, ...rest) => {
    owner = name;
    return claim(name, ...rest);
  };
}

function describe(error: unknown): string {
  const { code = "", message = String(error), stack = "" } = error as Partial<Error> & { code?: unknown };
  return `${String(code)} ${message} ${stack}`;
}
