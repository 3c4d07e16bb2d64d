import { isAbsolute, resolve, sep } from "node:path";
import type { TaskStore } from "@longjobs/core";
import { StagingStore } from "./disk/staging-store.ts";
import type { ForeignStagingStore } from "./foreign-staging.ts";
import type { FilesHttpOptions, FilesLimits, FilesOptions, LocalStagingOptions } from "./options.ts";

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
  if (typeof staging === "string") return toStagingStore({ dir: staging });
  if (isLocal(staging)) {
    const { dir, flush = false } = staging;
    if (typeof dir !== "string" || !isAbsolute(dir)) throw new TypeError("staging must be an absolute path.");
    if (typeof flush !== "boolean") throw new TypeError("staging.flush must be true or false.");
    return new StagingStore({ dir, flush });
  }
  const methods = ["create", "write", "getUpload", "remove", "hasExtension"] as const;
  const given = staging as Partial<ForeignStagingStore> | null | undefined;
  if (given === null || given === undefined || !methods.every((name) => typeof given[name] === "function"))
    throw new TypeError("staging must be a directory, or a DataStore of @tus/server.");
  return staging;
}

function isLocal(staging: unknown): staging is LocalStagingOptions {
  return typeof staging === "object" && staging !== null && "dir" in staging && !("write" in staging);
}

function directoriesOf(
  { store, stateDirs = [] }: FilesOptions,
  staging: StagingStore | ForeignStagingStore,
): Record<string, string> {
  const { dir } = store as { readonly dir?: unknown };
  return {
    ...(staging instanceof StagingStore ? { staging: staging.dir } : {}),
    ...(typeof dir === "string" ? { store: resolve(dir) } : {}),
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
