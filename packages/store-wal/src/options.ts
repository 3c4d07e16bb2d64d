import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import type { ErrorListener } from "@longjobs/core";
import type { FileLayer } from "./file-layer.ts";
import { nodeFiles } from "./node-file-layer.ts";

/** Options of `WalTaskStore.open`. */
export interface WalTaskStoreOptions {
  /** The directory of the log, on a local disk. Made with mode 0700 when it is missing. */
  readonly dir: string;
  /**
   * Flush to the disk before a write is acknowledged. Without it an acknowledged write survives the death of
   * the process, but not of the machine.
   * @default true
   */
  readonly fsync?: boolean | undefined;
  /** The largest record, in bytes of its JSON text; at most 512 MiB. @default 8 MiB */
  readonly maxRecordBytes?: number | undefined;
  /** Bytes of frames after which the log goes on in a new file; 4 KiB to 1 GiB. @default 32 MiB */
  readonly segmentBytes?: number | undefined;
  /** Disk space kept back for terminal writes on a full disk; at least 64 KiB, `null` for none. @default 16 MiB */
  readonly reserveBytes?: number | null | undefined;
  /** Recent records kept in memory, in bytes of JSON text; 0 for none. @default 16 MiB */
  readonly cacheBytes?: number | undefined;
  /** Superseded bytes below which compaction never starts. @default 16 MiB */
  readonly compactionFloorBytes?: number | undefined;
  /** Epoch milliseconds, for births and expiry. @default Date.now */
  readonly now?: (() => number) | undefined;
  /** A random unsigned 32-bit integer, for the salt of each file. @default from node:crypto */
  readonly randomUint32?: (() => number) | undefined;
  /** Where damage and failures of the housekeeping go. @default the global `reportError`, else the console */
  readonly onError?: ErrorListener | undefined;
  /** How files are reached; for tests that inject faults. @default node:fs */
  readonly files?: FileLayer | undefined;
}

export interface ResolvedOptions {
  readonly dir: string;
  readonly fsync: boolean;
  readonly maxRecordBytes: number;
  readonly segmentBytes: number;
  readonly reserveBytes: number | null;
  readonly cacheBytes: number;
  readonly compactionFloorBytes: number;
  readonly now: () => number;
  readonly randomUint32: () => number;
  readonly onError: ErrorListener | undefined;
  readonly files: FileLayer;
}

const KIB = 1024;
const MIB = 1024 * KIB;

/** Checks every option once, before anything is touched. @throws TypeError or RangeError that names the option. */
export function resolveOptions(options: WalTaskStoreOptions): ResolvedOptions {
  if (
    typeof options !== "object" ||
    options === null ||
    typeof options.dir !== "string" ||
    options.dir === ""
  ) {
    throw new TypeError("dir must be the path of a directory.");
  }
  const fsync = options.fsync ?? true;
  if (typeof fsync !== "boolean") throw new TypeError("fsync must be true or false.");
  const reserveBytes = options.reserveBytes === undefined ? 16 * MIB : options.reserveBytes;
  return {
    dir: resolve(options.dir),
    fsync,
    // The text of a record and its frame must each fit one string and one 32-bit length.
    maxRecordBytes: integerIn("maxRecordBytes", options.maxRecordBytes ?? 8 * MIB, 1, 512 * MIB),
    segmentBytes: integerIn("segmentBytes", options.segmentBytes ?? 32 * MIB, 4 * KIB, 1024 * MIB),
    reserveBytes:
      reserveBytes === null ? null : integerIn("reserveBytes", reserveBytes, 64 * KIB, 1024 * MIB),
    cacheBytes: integerIn("cacheBytes", options.cacheBytes ?? 16 * MIB, 0, Number.MAX_SAFE_INTEGER),
    compactionFloorBytes: integerIn(
      "compactionFloorBytes",
      options.compactionFloorBytes ?? 16 * MIB,
      1,
      Number.MAX_SAFE_INTEGER,
    ),
    now: functionOr("now", options.now, Date.now),
    randomUint32: functionOr("randomUint32", options.randomUint32, () => randomBytes(4).readUInt32LE()),
    onError: options.onError === undefined ? undefined : functionOr("onError", options.onError, () => {}),
    files: options.files ?? nodeFiles,
  };
}

function integerIn(name: string, value: number, least: number, most: number): number {
  if (!Number.isSafeInteger(value) || value < least || value > most) {
    throw new RangeError(`${name} must be an integer from ${least} to ${most}.`);
  }
  return value;
}

function functionOr<F extends (...args: never[]) => unknown>(
  name: string,
  value: F | undefined,
  fallback: F,
): F {
  if (value === undefined) return fallback;
  if (typeof value !== "function") throw new TypeError(`${name} must be a function.`);
  return value;
}
