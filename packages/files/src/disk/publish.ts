import type { FileLocation, Target } from "./roots.ts";
import type { StagingStore } from "./staging-store.ts";

/** What happens when the target exists: an error, replacement, or a name with a number. */
export type PublishPolicy = "fail" | "replace" | "version";

/**
 * Which file is about to get its name. Kept durably before the name is given, it lets a repeated call after a
 * crash recognise its own file instead of meeting it as a stranger's.
 */
export interface PublishNote {
  readonly dev: string;
  readonly ino: string;
}

/** What {@link publish} needs. */
export interface PublishOptions {
  /** Staged bytes on a disk, which are moved where they can be; or bytes to copy, from a store elsewhere. */
  readonly staged:
    | { readonly store: StagingStore; readonly id: string }
    | { readonly open: () => AsyncIterable<Uint8Array> };
  readonly target: Target;
  /** The declared size: `size_mismatch` with `partial.cursor`, the staged size, otherwise. */
  readonly sizeBytes: number;
  /** The declared digest, in hexadecimal; `checksum_mismatch` otherwise. Without one the digest is only computed. */
  readonly sha256?: string;
  readonly policy: PublishPolicy;
  /** Flush the file and its directory before the call resolves. @default true */
  readonly flush?: boolean;
  /** Awaited before the name is given: store the note where it survives a crash. */
  readonly onPrepared?: (note: PublishNote) => void | Promise<void>;
  /** The note of an earlier call for the same transfer that did not come back. */
  readonly prepared?: PublishNote;
  readonly onProgress?: (doneBytes: number, sizeBytes: number) => void;
  readonly signal?: AbortSignal;
}

/** What was published. */
export interface Published {
  /** Where it is; with `version` the name may differ from the one that was asked for. */
  readonly location: FileLocation;
  readonly sizeBytes: number;
  readonly sha256: string;
}

/**
 * Gives verified bytes their name. Until it resolves, everything stays staged and the old file is whole: whoever
 * looks at the target sees the old file, or all of the new one. The sidecar of the upload is kept: `discard` the
 * upload once its record says that it is published.
 */
export function publish(_options: PublishOptions): Promise<Published> {
  throw new Error("to come");
}
