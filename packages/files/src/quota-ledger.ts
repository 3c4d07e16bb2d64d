import { fingerprintJson, isLongJobsError, type TaskRecord, type TaskStore } from "@longjobs/core";
import { transferErrors } from "./transfer-errors.ts";

/** What one scope may have at a time; `null` is no limit. */
export interface ScopeLimits {
  readonly maxScopeBytes: number | null;
  readonly maxScopeFiles: number | null;
  readonly maxOpenTransfers: number | null;
}

/** What {@link QuotaLedger} needs. */
export interface QuotaLedgerOptions extends ScopeLimits {
  readonly store: TaskStore;
  readonly now: () => number;
  readonly random: () => number;
}

/** What one transfer counts for. */
export type QuotaEntry = {
  /** Declared or staged, whichever is more; published bytes count as long as the record of their transfer is kept. */
  readonly bytes: number;
  /** False for a download. */
  readonly isFile: boolean;
  readonly isOpen: boolean;
  /** When it was counted first: its record may not be there yet. */
  readonly sinceMs: number;
  /** When it no longer counts, in milliseconds since 1970, if nobody has taken it off before. */
  readonly untilMs: number;
};

type Entries = Readonly<Record<string, QuotaEntry>>;

const ledgerKind = "transfer-quota";
const maxConflicts = 40;

/** A transfer is counted before its record is written; nobody takes longer than this in between. */
const youngMs = 60_000;

/**
 * How much of its quota each scope has used: one record per scope, in the same store, written by compare-and-swap, so
 * that all instances count together. Entries go when their transfer ends; those of transfers that expired are found
 * gone when a limit is reached, or by a sweep.
 */
export class QuotaLedger {
  readonly #options: QuotaLedgerOptions;
  /** The scopes that this process has counted for: a sweep looks at their ledgers. */
  readonly #scopes = new Set<string | undefined>();

  constructor(options: QuotaLedgerOptions) {
    this.#options = options;
  }

  /** Counts a transfer, or counts it anew. @throws `quota_exceeded`; nothing has changed then. */
  async count(scope: string | undefined, transferId: string, entry: QuotaEntry): Promise<void> {
    if (this.#isUnlimited()) return;
    try {
      await this.#change(scope, (entries) => this.#admit(entries, transferId, entry));
    } catch (error) {
      if (!isLongJobsError(error, "quota_exceeded")) throw error;
      // Some of what is counted may have expired since.
      const gone = await this.#findGone(scope);
      if (gone.size === 0) throw error;
      await this.#change(scope, (entries) => this.#admit(without(entries, gone), transferId, entry));
    }
  }

  /** Counts a transfer no longer. */
  async release(scope: string | undefined, transferId: string): Promise<void> {
    if (this.#isUnlimited()) return;
    await this.#change(scope, (entries) => without(entries, new Set([transferId])));
  }

  /** Takes off what has expired, in the ledgers that this process has used. */
  async sweep(): Promise<void> {
    for (const scope of this.#scopes) {
      const gone = await this.#findGone(scope);
      const left = await this.#change(scope, (entries) => without(entries, gone));
      if (Object.keys(left).length === 0) this.#scopes.delete(scope);
    }
  }

  #isUnlimited(): boolean {
    const { maxScopeBytes, maxScopeFiles, maxOpenTransfers } = this.#options;
    return maxScopeBytes === null && maxScopeFiles === null && maxOpenTransfers === null;
  }

  #admit(entries: Entries, transferId: string, entry: QuotaEntry): Entries {
    const others = Object.values(without(entries, new Set([transferId])));
    const { maxScopeBytes, maxScopeFiles, maxOpenTransfers } = this.#options;
    const before = entries[transferId];
    const check = (what: string, limit: number | null, of: (counted: QuotaEntry) => number): void => {
      const used = others.reduce((sum, each) => sum + of(each), 0);
      // What was admitted once stays admitted, also after a limit was lowered.
      if (of(entry) <= (before === undefined ? 0 : of(before))) return;
      if (limit !== null && used + of(entry) > limit) throw transferErrors.quota(what, used, limit);
    };
    check("Open transfers", maxOpenTransfers, ({ isOpen }) => Number(isOpen));
    check("Files", maxScopeFiles, ({ isFile }) => Number(isFile));
    check("Bytes", maxScopeBytes, ({ bytes }) => bytes);
    return { ...entries, [transferId]: entry };
  }

  async #findGone(scope: string | undefined): Promise<ReadonlySet<string>> {
    const record = await this.#options.store.get(await ledgerId(scope));
    const gone = new Set<string>();
    for (const [transferId, { sinceMs }] of Object.entries(entriesOf(record))) {
      if (this.#options.now() - sinceMs < youngMs) continue;
      if ((await this.#options.store.get(transferId)) === undefined) gone.add(transferId);
    }
    return gone;
  }

  async #change(scope: string | undefined, change: (entries: Entries) => Entries): Promise<Entries> {
    this.#scopes.add(scope);
    const { store, random } = this.#options;
    const id = await ledgerId(scope);
    for (let conflicts = 0; ; conflicts += 1) {
      const record = await store.get(id);
      const entries = entriesOf(record);
      const changed = change(this.#unexpired(entries));
      if (sameEntries(entries, changed)) return changed;
      try {
        await this.#write(id, record, changed);
        return changed;
      } catch (error) {
        const lostRace = ["version_conflict", "task_exists", "unknown_task"].some((code) =>
          isLongJobsError(error, code),
        );
        if (!lostRace || conflicts >= maxConflicts) throw error;
        await pause(random() * Math.min(2 ** conflicts, 50));
      }
    }
  }

  #unexpired(entries: Entries): Entries {
    const nowMs = this.#options.now();
    return Object.fromEntries(Object.entries(entries).filter(([, { untilMs }]) => untilMs > nowMs));
  }

  /** An empty ledger has no time left: the store deletes it with the next sweep. */
  async #write(id: string, record: TaskRecord | undefined, entries: Entries): Promise<void> {
    const { store, now, random } = this.#options;
    const nowMs = now();
    const untilMs = Math.max(...Object.values(entries).map((entry) => entry.untilMs), 0);
    const stamp = new Date(nowMs).toISOString();
    if (record === undefined) {
      await store.create({
        taskId: id,
        version: Math.floor(random() * 2 ** 31),
        // Terminal: it is nobody's work, and no claim ever looks at it.
        status: "completed",
        result: {},
        createdAt: stamp,
        lastUpdatedAt: stamp,
        ttlMs: untilMs - nowMs,
        retentionMs: null,
        attempt: 0,
        crashes: 0,
        kind: ledgerKind,
        data: entries,
      });
      return;
    }
    const ttlMs = Math.max(0, untilMs - Date.parse(record.createdAt));
    await store.update(id, { data: entries, ttlMs, lastUpdatedAt: stamp }, record.version);
  }
}

/** A reserved id: it has a character that no id on the wire has. */
async function ledgerId(scope: string | undefined): Promise<string> {
  return `files~quota~${await fingerprintJson(scope ?? null)}`;
}

function entriesOf(record: TaskRecord | undefined): Entries {
  return record?.kind === ledgerKind ? (record.data as unknown as Entries) : {};
}

function without(entries: Entries, gone: ReadonlySet<string>): Entries {
  return Object.fromEntries(Object.entries(entries).filter(([transferId]) => !gone.has(transferId)));
}

/** Entries are replaced, never changed. */
function sameEntries(before: Entries, after: Entries): boolean {
  const ids = Object.keys(after);
  return ids.length === Object.keys(before).length && ids.every((id) => before[id] === after[id]);
}

async function pause(delayMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    setTimeout(resolve, delayMs);
  });
}
