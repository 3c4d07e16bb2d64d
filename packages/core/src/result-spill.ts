/** A result that is too large for a record, or for an answer. */
export interface ResultToSpill {
  /** The task that it is the result of: it is kept as long as that task is, and deleted with it. */
  readonly taskId: string;
  /** Whose task it is; nobody else may read the result. */
  readonly scope?: string | undefined;
  /** What people call it, such as `report-result.json`. */
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
  /** When the task expires at the earliest, in milliseconds since 1970; `null` for never. */
  readonly untilMs: number | null;
}

/** Where a spilled result is. Plain JSON, for the record of the task and for a `resource_link`. */
export type SpilledResult = {
  /** For `resources/read`. */
  readonly uri: string;
  /** For the tools and the endpoint of file transfer. */
  readonly transferId: string;
  readonly name: string;
  readonly mimeType: string;
  readonly size: number;
  /** In hexadecimal. */
  readonly sha256: string;
};

/** A place for large results. `@longjobs/files` has one; `@longjobs/tasks` takes one. Neither knows the other. */
export interface ResultSpill {
  /**
   * Keeps a result. Durable before it resolves, as far as the place is. Rejects with `no_space`, and with whatever the place
   * and its store reject with; nothing is kept then.
   */
  spill(result: ResultToSpill): Promise<SpilledResult>;
  /** Deletes a result that its task does not have after all. One that is gone already is fine. */
  discard(spilled: SpilledResult): Promise<void>;
}
