import type { PublishPolicy } from "./publish-policy.ts";
import type { StagingStore } from "./staging-store.ts";
import type { FileLocation, Target } from "./target.ts";

/** Staged bytes on a disk, which are moved where they can be; or bytes to copy, from a store elsewhere. */
export type StagedBytes =
  | { readonly store: StagingStore; readonly id: string }
  | { readonly open: () => AsyncIterable<Uint8Array> };

/**
 * Which file is about to get its name. Kept durably before the name is given, it lets a repeated call after a
 * crash recognise its own file instead of meeting it as a stranger's. JSON.
 */
export type PublishNote = {
  readonly ino: string;
  readonly sizeBytes: number;
  readonly sha256: string;
  /** An empty file of this name is ours: it keeps the name free on a disk without links. */
  readonly placeholder?: string;
};

/** What `publish` needs. */
export interface PublishOptions {
  readonly staged: StagedBytes;
  readonly target: Target;
  /** The declared size: `size_mismatch` with `partial.cursor`, the staged size, otherwise. */
  readonly sizeBytes: number;
  /** The declared digest, in hexadecimal; `checksum_mismatch` otherwise. Without one the digest is only computed. */
  readonly sha256?: string;
  readonly policy: PublishPolicy;
  /** Flush the file and its directory before the call resolves. @default true */
  readonly flush?: boolean;
  /** Awaited before the name is given: store the note where it survives a crash. The last one counts. */
  readonly onPrepared?: (note: PublishNote) => void | Promise<void>;
  /** The last note of an earlier call for the same transfer that did not come back. */
  readonly prepared?: PublishNote;
  readonly onProgress?: (doneBytes: number, sizeBytes: number) => void;
  /** Ends the call while the bytes are read; once the name is being given, it goes on to its end. */
  readonly signal?: AbortSignal;
}

/** What was published. */
export interface Published {
  /** Where it is; with `version` the name may differ from the one that was asked for. */
  readonly location: FileLocation;
  readonly sizeBytes: number;
  readonly sha256: string;
}
