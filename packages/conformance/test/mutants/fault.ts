import type { TaskRecord } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import { ReferenceTaskStore, type Entry } from "../support/reference-task-store.ts";

export const faultMutants: readonly Mutant[] = [
  {
    fault: "a failing backend shows as the driver's own error",
    caughtBy: ["fault.writes-reject-with-a-code"],
    Store: class extends ReferenceTaskStore {
      override unavailable(): Error {
        return new Error("read ECONNRESET");
      }
    },
  },
  {
    fault: "a write whose reply was lost leaves half",
    caughtBy: ["fault.writes-happened-or-not"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        const { progress: _torn, ...record } = entry.record;
        super.put(this.backing.failing ? { ...entry, record } : entry);
      }
    },
  },
  {
    fault: "a write that the failing backend lost is acknowledged",
    caughtBy: ["fault.writes-happened-or-not"],
    Store: class extends ReferenceTaskStore {
      #lost = 0;
      override put(entry: Entry): void {
        if (this.backing.failing && (this.#lost += 1) === 3) return;
        super.put(entry);
      }
    },
  },
  {
    fault: "a read that fails looks like an unknown id",
    caughtBy: ["fault.reads-tell-the-truth"],
    Store: class extends ReferenceTaskStore {
      override async get(taskId: string): Promise<TaskRecord | undefined> {
        const record = await super.get(taskId);
        return this.backing.failing ? undefined : record;
      }
    },
  },
  {
    fault: "after a failure no write ever succeeds, in a new opening neither",
    caughtBy: ["fault.goes-on-afterwards"],
    Store: class extends ReferenceTaskStore {
      override put(entry: Entry): void {
        if (this.backing.failing) this.backing.notes.set("broken", true);
        if (this.backing.notes.has("broken") && !this.backing.failing) throw this.unavailable();
        super.put(entry);
      }
    },
  },
];
