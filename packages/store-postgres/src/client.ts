/*
 * What this package needs of `pg`, and nothing more: a `Pool` and a `Client` of pg 8 fit, and so does a wrapper
 * around them. No type of `pg` appears in our declarations.
 */

/** One statement and its values. */
export interface PostgresStatement {
  readonly text: string;
  // Not readonly: the drivers declare an array that they may change.
  readonly values?: unknown[];
  /** The name of a prepared statement. */
  readonly name?: string;
}

/** What a statement resolves to. */
export interface PostgresResult {
  readonly rows: readonly object[];
  readonly rowCount: number | null;
}

/** Something that runs statements: a client, or the one that holds your transaction. */
export interface PostgresQueryable {
  query(statement: PostgresStatement): Promise<PostgresResult>;
}

/** A connection that was taken from a pool. */
export interface PostgresConnection extends PostgresQueryable {
  /** Gives the connection back; `true` closes it instead. */
  release(destroy?: boolean): void;
  on(event: "error", listener: (error: Error) => void): unknown;
  removeListener(event: "error", listener: (error: Error) => void): unknown;
}

/** A pool of connections, such as a `Pool` of `pg`. It stays yours: the store never ends it. */
export interface PostgresPool {
  connect(): Promise<PostgresConnection>;
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** A connection of its own for notifications, such as a `Client` of `pg` that is not yet connected. */
export interface PostgresListenClient extends PostgresQueryable {
  connect(): Promise<unknown>;
  end(): Promise<void>;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  on(event: "notification", listener: (message: PostgresNotification) => void): unknown;
  /** Where the socket is, so that a connection that answers no more can be let go of. */
  readonly connection?: { readonly stream: { destroy(): unknown } };
}

/** A message of `NOTIFY`. */
export interface PostgresNotification {
  readonly channel: string;
  readonly payload?: string | undefined;
}
