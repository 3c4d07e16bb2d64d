import { isAbsolute, resolve, sep } from "node:path";
import type { ErrorListener, ScopeOption, TaskStore } from "@longjobs/core";
import { StagingStore } from "./disk/staging-store.ts";
import type { RootOptions } from "./disk/root.ts";
import type { ForeignStagingStore } from "./staging.ts";

/** Options of `createFiles`. */
export interface FilesOptions {
  /** Where the transfers are kept; the same store as that of tasks is fine. It is never closed here. */
  readonly store: TaskStore;
  /**
   * Where bytes wait until they are published: an absolute directory on a local disk, outside every root, used by
   * this store alone; a `StagingStore`; or a `DataStore` of `@tus/server` for S3, GCS or Azure.
   */
  readonly staging: string | StagingStore | ForeignStagingStore;
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

/** {@link FilesOptions} with every default filled in. */
export interface ResolvedFilesOptions {
  readonly staging: StagingStore | ForeignStagingStore;
  readonly http: ResolvedHttpOptions | undefined;
  readonly limits: Readonly<Record<keyof FilesLimits, number | null>>;
  readonly toolPrefix: string;
  readonly maxMessageBytes: number;
  readonly idleMs: number;
  readonly maxLifetimeMs: number;
  readonly retentionMs: number;
  readonly sweepIntervalMs: number | null;
  readonly leaseMs: number;
  readonly staleWriterMs: number;
  /** What no root may hold, by what it is. */
  readonly ownDirs: Readonly<Record<string, string>>;
  readonly now: () => number;
  readonly monotonicMs: () => number;
  readonly randomId: () => string;
  readonly random: () => number;
}

/** {@link FilesHttpOptions} with every default filled in. */
export interface ResolvedHttpOptions {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly path: string;
  readonly secrets: readonly string[];
  readonly downloadUrlMs: number;
  readonly corsOrigins: "*" | readonly string[];
}

const hourMs = 3_600_000;
const gib = 1024 ** 3;
/** Timers count in a signed 32-bit number of milliseconds. */
const maxTimerMs = 2 ** 31 - 1;

/** Checks every option once. @throws TypeError, RangeError */
export function resolveFilesOptions(options: FilesOptions): ResolvedFilesOptions {
  assertStore(options.store);
  const { toolPrefix = "file_transfer", limits = {} } = options;
  if (typeof toolPrefix !== "string" || !/^\w{1,40}$/.test(toolPrefix))
    throw new TypeError("toolPrefix must be 1 to 40 letters, digits and underscores.");
  const staging = toStagingStore(options.staging);
  const ownDirs = directoriesOf(options, staging);
  assertApart(options.roots, ownDirs);
  const idleMs = count("idleMs", options.idleMs, 24 * hourMs, { min: 1_000 });
  const maxLifetimeMs = count("maxLifetimeMs", options.maxLifetimeMs, Math.max(7 * 24 * hourMs, idleMs), {
    min: 1_000,
  });
  return {
    staging,
    ownDirs,
    toolPrefix,
    idleMs,
    maxLifetimeMs,
    http: options.http === undefined ? undefined : resolveHttp(options.http),
    limits: {
      maxFileBytes: bound("maxFileBytes", limits.maxFileBytes, 5 * gib),
      maxScopeBytes: bound("maxScopeBytes", limits.maxScopeBytes, 20 * gib),
      maxScopeFiles: bound("maxScopeFiles", limits.maxScopeFiles, 1_000),
      maxOpenTransfers: bound("maxOpenTransfers", limits.maxOpenTransfers, 100),
    },
    maxMessageBytes: count("maxMessageBytes", options.maxMessageBytes, 4 * 1024 * 1024, { min: 16 * 1024 }),
    retentionMs: count("retentionMs", options.retentionMs, hourMs, { min: 0 }),
    sweepIntervalMs:
      options.sweepIntervalMs === null
        ? null
        : count("sweepIntervalMs", options.sweepIntervalMs, 60_000, { min: 1, max: maxTimerMs }),
    leaseMs: count("leaseMs", options.leaseMs, 15_000, { min: 1_000, max: maxTimerMs }),
    staleWriterMs: count("staleWriterMs", options.staleWriterMs, 5_000, { min: 0, max: maxTimerMs }),
    now: options.now ?? Date.now,
    monotonicMs: options.monotonicMs ?? (() => performance.now()),
    randomId: options.randomId ?? (() => crypto.randomUUID()),
    random: options.random ?? Math.random,
  };
}

function resolveHttp(http: FilesHttpOptions): ResolvedHttpOptions {
  const { corsOrigins = "*", secrets = [] } = http;
  const url = URL.canParse(http.baseUrl) ? new URL(http.baseUrl) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.search !== "" || url.hash !== "")
    throw new TypeError("http.baseUrl must be the http or https URL of the endpoint, without a query.");
  for (const secret of secrets) {
    if (typeof secret !== "string") throw new TypeError("http.secrets must be strings.");
    if (secret.length < 32) throw new RangeError("http.secrets must have at least 32 characters each.");
  }
  if (
    corsOrigins !== "*" &&
    !(Array.isArray(corsOrigins) && corsOrigins.every((each) => typeof each === "string"))
  )
    throw new TypeError('http.corsOrigins must be "*" or a list of origins.');
  const path = http.path ?? url.pathname;
  if (!path.startsWith("/")) throw new TypeError("http.path must begin with a slash.");
  return {
    baseUrl: `${url.origin}${url.pathname}`.replace(/\/+$/, ""),
    path: path.replace(/\/+$/, ""),
    secrets,
    corsOrigins,
    downloadUrlMs: count("http.downloadUrlMs", http.downloadUrlMs, 15 * 60_000, { min: 1_000 }),
  };
}

function toStagingStore(staging: FilesOptions["staging"]): StagingStore | ForeignStagingStore {
  if (typeof staging === "string") {
    if (!isAbsolute(staging)) throw new TypeError("staging must be an absolute path.");
    return new StagingStore({ dir: staging });
  }
  const methods = ["create", "write", "getUpload", "remove", "hasExtension"] as const;
  const given = staging as Partial<ForeignStagingStore> | null | undefined;
  if (given === null || given === undefined || !methods.every((name) => typeof given[name] === "function"))
    throw new TypeError("staging must be a directory, a StagingStore or a DataStore of @tus/server.");
  return staging;
}

function directoriesOf(
  { store, stateDirs = [] }: FilesOptions,
  staging: StagingStore | ForeignStagingStore,
): Record<string, string> {
  const { dir } = store as { readonly dir?: unknown };
  return {
    ...(staging instanceof StagingStore ? { staging: staging.dir } : {}),
    ...(typeof dir === "string" ? { store: dir } : {}),
    ...Object.fromEntries(stateDirs.map((path, index) => [`state ${index + 1}`, path])),
  };
}

/** By their names alone; what links hide is found when the directories are opened. */
function assertApart(roots: FilesOptions["roots"], ownDirs: Readonly<Record<string, string>>): void {
  if (typeof roots !== "object" || roots === null || Object.keys(roots).length === 0)
    throw new TypeError("roots must name at least one directory.");
  for (const [name, root] of Object.entries(roots)) {
    for (const [label, dir] of Object.entries(ownDirs)) {
      if (typeof dir !== "string" || !isAbsolute(dir))
        throw new TypeError(`The ${label} directory must be an absolute path.`);
      if (typeof root?.path !== "string") continue;
      if (isInside(dir, root.path) || isInside(root.path, dir))
        throw new TypeError(
          `The ${label} directory and the root ${name} lie one in the other: clients could read and replace what the server keeps. Move one of them.`,
        );
    }
  }
}

function isInside(inner: string, outer: string): boolean {
  const [path, around] = [resolve(inner), resolve(outer)];
  return path === around || path.startsWith(around.endsWith(sep) ? around : around + sep);
}

function assertStore(store: unknown): void {
  const given = store as Partial<Record<keyof TaskStore, unknown>> | null | undefined;
  const methods = ["create", "get", "update", "sweep"] as const;
  if (!methods.every((name) => typeof given?.[name] === "function"))
    throw new TypeError("store must be a TaskStore.");
}

function bound(name: string, given: number | null | undefined, fallback: number): number | null {
  return given === null ? null : count(`limits.${name}`, given, fallback, { min: 0 });
}

function count(
  name: string,
  given: number | undefined,
  fallback: number,
  { min, max = Number.MAX_SAFE_INTEGER }: { readonly min: number; readonly max?: number },
): number {
  if (given === undefined) return fallback;
  if (typeof given !== "number") throw new TypeError(`${name} must be a number.`);
  if (!Number.isSafeInteger(given) || given < min || given > max)
    throw new RangeError(`${name} must be a whole number from ${min} to ${max}.`);
  return given;
}
