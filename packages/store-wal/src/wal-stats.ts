/** What `WalTaskStore.stats()` tells: the log at this moment, and what was done since it was opened. */
export interface WalStats {
  /** Tasks that take up space, damaged ones included; an expired one counts until it is swept. */
  readonly tasks: number;
  /** Bytes of the log that some task needs. */
  readonly liveBytes: number;
  /** Bytes of the log that nobody needs any more: compaction gives them back. */
  readonly garbageBytes: number;
  /** Files of the log. */
  readonly segments: number;
  /** Batches that were made durable: one write each and, unless `fsync` is off, one flush. */
  readonly flushes: number;
  /** Records in those batches: creations, updates, deletions, and what compaction copied. */
  readonly records: number;
  /** `records` by `flushes`: how many writes share one flush; 0 before the first. */
  readonly recordsPerFlush: number;
  /** The last compaction that gave space back; `null` before the first. */
  readonly lastCompaction: LastCompaction | null;
}

/** A run of compaction, up to the last file that it deleted. */
export interface LastCompaction {
  /** ISO 8601, by the clock of the store. */
  readonly endedAt: string;
  readonly durationMs: number;
  readonly deletedSegments: number;
  /** Superseded bytes in the files that it deleted; what was still needed of them lies elsewhere now. */
  readonly freedBytes: number;
}
