import type { ErrorListener, ScopeOption, TaskStore } from "@longjobs/core";
import type { RootOptions } from "./disk/root-options.ts";
import type { ForeignStagingStore } from "./foreign-staging.ts";

/** Options of `createFiles`. */
export interface FilesOptions {
  /** Where the transfers are kept; the same store as that of tasks is fine. It is never closed here. */
  readonly store: TaskStore;
  /**
   * Where bytes wait until they are published: an absolute directory on a local disk, outside every root, used by
   * this store alone; the same with options; or a `DataStore` of `@tus/server` for S3, GCS or Azure.
   */
  readonly staging: string | LocalStagingOptions | ForeignStagingStore;
  /** The directories that clients may name, by name. */
  readonly roots: Readonly<Record<string, RootOptions>>;
  /**
   * Whose transfer a call is about. `null`: everyone who can reach the server shares its transfers.
   * @default over HTTP `clientId`, `extra.iss` and `extra.sub` of the auth info together, all required; one user elsewhere
   */
  readonly scope?: ScopeOption;
  /** The endpoint for uploads by TUS and downloads by GET. @default none: transfers by tool alone */
  readonly http?: FilesHttpOptions;
  /** How much clients may send. */
  readonly limits?: FilesLimits;
  /** What the names of the tools begin with; letters, digits and `_`, at most 40. @default "file_transfer" */
  readonly toolPrefix?: string;
  /** The largest MCP message, in bytes, from 16 KiB: chunks are made to fit. @default 4 MiB, as the SDKs take over HTTP */
  readonly maxMessageBytes?: number;
  /** How long an unused transfer stays, in milliseconds. @default 24 hours */
  readonly idleMs?: number;
  /** How long a transfer stays at most, in milliseconds; a live writer may finish. @default 7 days */
  readonly maxLifetimeMs?: number;
  /** How long a transfer that has ended can be asked about, in milliseconds. @default 1 hour */
  readonly retentionMs?: number;
  /** How often expired transfers are swept, in milliseconds; `null` never sweeps by itself. @default 60_000 */
  readonly sweepIntervalMs?: number | null;
  /** How long the lease of a writer lasts without bytes, in milliseconds, from 1_000. @default 15_000 */
  readonly leaseMs?: number;
  /** A request whose last byte is older than this, in milliseconds, makes way for the next one. @default 5_000 */
  readonly staleWriterMs?: number;
  /** Other directories of the server's own that no root may hold. That of `WalTaskStore` is known. @default none */
  readonly stateDirs?: readonly string[];
  /** Where failures go that no caller waits for. @default the global `reportError`, else the console */
  readonly onError?: ErrorListener;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
  /** Milliseconds that never go back. @default performance.now */
  readonly monotonicMs?: () => number;
  /** Unguessable ids, for transfers and leases. @default crypto.randomUUID */
  readonly randomId?: () => string;
  /** In [0, 1): spreads retries. @default Math.random */
  readonly random?: () => number;
}

/** A staging directory. */
export interface LocalStagingOptions {
  /** Absolute. Made with mode 0700 when it is missing. */
  readonly dir: string;
  /** Flush each write to the disk before it is acknowledged: what is acknowledged survives a power cut. @default false */
  readonly flush?: boolean;
}

/** The endpoint of `files.fetch`. */
export interface FilesHttpOptions {
  /** Where clients reach the endpoint, such as `https://example.org/files`; never taken from a request. */
  readonly baseUrl: string;
  /** The path at which requests arrive here, where a proxy changes it. @default the path of `baseUrl` */
  readonly path?: string;
  /**
   * Keys that sign URLs, at least 32 characters each: the first signs, all are accepted.
   * @default one that is made once and kept in the store
   */
  readonly secrets?: readonly string[];
  /** How long a download URL is good for, in milliseconds. @default 15 minutes */
  readonly downloadUrlMs?: number;
  /** Origins whose pages may use the endpoint. The URLs are the credential: no cookies are involved. @default "*" */
  readonly corsOrigins?: "*" | readonly string[];
}

/** Bounds for each client. `null` is none. */
export interface FilesLimits {
  /** The largest file that may be uploaded, in bytes. @default 5 GiB */
  readonly maxFileBytes?: number | null;
  /** Bytes of one scope: of its open uploads, and of what it published within `retentionMs`. @default 20 GiB */
  readonly maxScopeBytes?: number | null;
  /** Files of one scope: its open uploads, and what it published within `retentionMs`. @default 1_000 */
  readonly maxScopeFiles?: number | null;
  /** Open transfers of one scope, up and down. @default 100 */
  readonly maxOpenTransfers?: number | null;
}
