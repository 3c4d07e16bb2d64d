import type { ClaimOptions, TaskPatch, TaskRecord } from "@longjobs/core";

import type { Mutant } from "../support/mutant.ts";
import { gap, ReferenceTaskStore } from "../support/reference-task-store.ts";

/** Lets calls of one handle pass one by one. */
class Turnstile {
  #last: Promise<unknown> = Promise.resolve();
  run<T>(call: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(call);
    this.#last = turn.catch(() => undefined);
    return turn;
  }
}

/** A wrong store that looks, waits, then creates, in the cases in which `isCareless` says so. */
abstract class GapInCreate extends ReferenceTaskStore {
  protected abstract isCareless(record: TaskRecord): boolean;

  override async create(record: TaskRecord): Promise<void> {
    const careless = !this.closed && this.live(record.taskId) === undefined && this.isCareless(record);
    if (!careless) return super.create(record);
    await gap();
    this.put({ record: this.encode(record), bornAtMs: this.backing.nowMs });
  }
}

/** A wrong store that compares versions, waits, then writes, in the cases in which `isCareless` says so. */
abstract class GapInUpdate extends ReferenceTaskStore {
  protected abstract isCareless(patch: TaskPatch): boolean;

  override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
    const entry = this.closed ? undefined : this.live(taskId);
    const careless = entry?.record.version === expectedVersion && this.isCareless(patch);
    if (!careless) return super.update(taskId, patch, expectedVersion);
    await gap();
    this.put({ ...entry, record: this.apply(entry.record, this.encodePatch(patch)) });
    this.notify(taskId);
    return expectedVersion + 1;
  }
}

/** A wrong store that chooses, waits, then takes what it saw, in the cases in which `isCareless` says so. */
abstract class GapInClaim extends ReferenceTaskStore {
  protected abstract isCareless(options: ClaimOptions): boolean;

  override async claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
    if (this.closed || !this.isCareless(options)) return super.claim(owner, leaseMs, options);
    this.assertClaim(owner, leaseMs, options.limit);
    const chosen = this.candidates(options)
      .filter((entry) => this.isFree(entry) && this.isWanted(entry.record, options))
      .slice(0, options.limit);
    await gap();
    return chosen.map((entry) => this.take(entry, owner, leaseMs));
  }
}

/** A wrong store whose reads at once share one old copy for a while, in the cases in which `isCareless` says so. */
abstract class SharedStaleReads extends ReferenceTaskStore {
  #reading = 0;
  #copy: { readonly record: TaskRecord | undefined; uses: number } | undefined;
  protected abstract isCareless(): boolean;

  override async get(taskId: string): Promise<TaskRecord | undefined> {
    this.#reading += 1;
    let record: TaskRecord | undefined;
    try {
      record = await super.get(taskId);
      await gap();
    } finally {
      this.#reading -= 1;
    }
    if (this.#reading === 0 || !this.isCareless()) return record;
    if (this.#copy === undefined || this.#copy.uses >= 5) this.#copy = { record, uses: 0 };
    this.#copy.uses += 1;
    return this.#copy.record;
  }
}

export const raceMutants: readonly Mutant[] = [
  {
    fault: "create() takes no lock while there is one handle",
    caughtBy: ["race.one-creator"],
    Store: class extends GapInCreate {
      override isCareless({ taskId, statusMessage }: TaskRecord): boolean {
        const contended = statusMessage?.startsWith("creator") === true;
        return contended && this.backing.handles === 1 && this.find(taskId) === undefined;
      }
    },
  },
  {
    fault: "create() over an expired record takes no lock",
    caughtBy: ["race.one-creator-after-expiry"],
    Store: class extends GapInCreate {
      override isCareless({ taskId, statusMessage }: TaskRecord): boolean {
        return statusMessage?.startsWith("creator") === true && this.find(taskId) !== undefined;
      }
    },
  },
  {
    fault: "update() compares and writes in two steps",
    caughtBy: [
      "race.one-writer",
      "race.reads-follow-writes",
      "race.claims-follow-writes",
      "race.one-writer-of-two-handles",
      "race.reads-follow-writes-of-two-handles",
    ],
    Store: class extends GapInUpdate {
      override isCareless(patch: TaskPatch): boolean {
        return patch.statusMessage?.startsWith("writer") === true;
      }
    },
  },
  {
    fault: "update() of progress takes no lock while there is one handle",
    caughtBy: ["race.one-writer"],
    Store: class extends GapInUpdate {
      override isCareless({ progress, data }: TaskPatch): boolean {
        return progress !== undefined && data === undefined && this.backing.handles === 1;
      }
    },
  },
  {
    fault: "update() writes the status message first and the rest later",
    caughtBy: ["race.no-half-states"],
    Store: class extends ReferenceTaskStore {
      override async update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        const { statusMessage, ...rest } = patch;
        if (statusMessage === undefined || rest.data === undefined || rest.progress === undefined) {
          return super.update(taskId, patch, expectedVersion);
        }
        const version = await super.update(taskId, { statusMessage }, expectedVersion);
        await gap();
        const entry = this.live(taskId);
        if (entry !== undefined)
          this.put({ ...entry, record: { ...this.apply(entry.record, rest), version } });
        return version;
      }
    },
  },
  {
    fault: "reads at once share an old copy while there is one handle",
    caughtBy: ["race.reads-follow-writes"],
    Store: class extends SharedStaleReads {
      #claimed = false;
      override isCareless(): boolean {
        return this.backing.handles === 1 && !this.#claimed;
      }
      override claim(...args: Parameters<ReferenceTaskStore["claim"]>): Promise<TaskRecord[]> {
        this.#claimed = true;
        return super.claim(...args);
      }
    },
  },
  {
    fault: "claim() of many chooses, then takes without another look",
    caughtBy: ["race.one-claimer"],
    Store: class extends GapInClaim {
      override isCareless({ limit }: ClaimOptions): boolean {
        return limit > 1 && this.backing.handles === 1;
      }
    },
  },
  {
    fault: "claim() of one writes over an update that came after its look",
    caughtBy: ["race.claims-follow-writes"],
    Store: class extends GapInClaim {
      override isCareless({ limit }: ClaimOptions): boolean {
        return limit === 1 && this.backing.handles === 1;
      }
    },
  },
  {
    fault: "sweep() looks for expired ids, then deletes whatever has them",
    caughtBy: ["race.sweep-spares-the-reborn"],
    Store: class extends ReferenceTaskStore {
      override async sweep(): Promise<number> {
        this.assertOpen();
        const expired = [...this.backing.entries]
          .filter(([, entry]) => this.isSwept(entry))
          .map(([taskId]) => taskId);
        await gap();
        return expired.filter((taskId) => this.backing.entries.delete(taskId)).length;
      }
    },
  },
];

export const sharedRaceMutants: readonly Mutant[] = [
  {
    fault: "create() locks within its own handle only",
    caughtBy: ["race.one-creator-of-two-handles"],
    Store: class extends GapInCreate {
      readonly #turnstile = new Turnstile();
      override isCareless(): boolean {
        return this.backing.handles > 1;
      }
      override create(record: TaskRecord): Promise<void> {
        const contended = record.statusMessage?.startsWith("creator") === true && this.backing.handles > 1;
        return contended ? this.#turnstile.run(() => super.create(record)) : super.create(record);
      }
    },
  },
  {
    fault: "update() of progress locks within its own handle only",
    caughtBy: ["race.one-writer-of-two-handles"],
    Store: class extends GapInUpdate {
      readonly #turnstile = new Turnstile();
      override isCareless({ progress }: TaskPatch): boolean {
        return progress !== undefined && this.backing.handles > 1;
      }
      override update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number> {
        return this.isCareless(patch)
          ? this.#turnstile.run(() => super.update(taskId, patch, expectedVersion))
          : super.update(taskId, patch, expectedVersion);
      }
    },
  },
  {
    fault: "claim() locks within its own handle only",
    caughtBy: ["race.one-claimer-of-two-handles"],
    Store: class extends GapInClaim {
      readonly #turnstile = new Turnstile();
      override isCareless(): boolean {
        return this.backing.handles > 1;
      }
      override claim(owner: string, leaseMs: number, options: ClaimOptions): Promise<TaskRecord[]> {
        return this.#turnstile.run(() => super.claim(owner, leaseMs, options));
      }
    },
  },
  {
    fault: "reads at once share an old copy while there are two handles",
    caughtBy: ["race.reads-follow-writes-of-two-handles"],
    Store: class extends SharedStaleReads {
      override isCareless(): boolean {
        return this.backing.handles > 1;
      }
    },
  },
];
