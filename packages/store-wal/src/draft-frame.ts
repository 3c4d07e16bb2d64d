import type { EncodedId } from "./encode-id.ts";
import {
  BLOB_ENTRY_BYTES,
  frameBytes,
  frameKinds,
  META_FIXED_BYTES,
  type FrameKind,
} from "./frame-format.ts";
import type { BlobRef } from "./log-segment.ts";
import { isLarge, isOpen, memberBytes, type TaskField } from "./task-fields.ts";

/** A large field of a frame to be written: a reference to where it is, or its text. */
export interface DraftBlob {
  readonly key: string;
  readonly ref: BlobRef | undefined;
  readonly content: string | Buffer | undefined;
  readonly bytes: number;
  /** The field to tell where its value lies, once it is written. */
  readonly field: TaskField | undefined;
}

/** The small fields of a frame: their JSON text, or the fields it is made of. Large ones among them are passed over. */
export type SmallFields = string | Buffer | readonly TaskField[];

/** A frame before it has a place: its sizes are known, its sequence number and salt are not. */
export interface FrameDraft {
  readonly kind: FrameKind;
  /** Empty, with the hash alone, for damage whose task is known only by that. */
  readonly id: EncodedId;
  readonly version: number;
  readonly bornAtMs: number;
  readonly ttlMs: number | null;
  readonly small: SmallFields;
  readonly blobs: readonly DraftBlob[];
  readonly metaBytes: number;
  readonly blobsBytes: number;
  /** All bytes of the frame, without the names of other frames. */
  readonly bytes: number;
  /** True for a task that is neither terminal nor of another kind. */
  readonly isOpen: boolean;
  /** Set for a copy: the sequence number of the original. */
  readonly copyOf: number | undefined;
  /** True for a frame that an opening writes, before anybody else may. */
  readonly isSettling: boolean;
}

export type DraftParts = Pick<FrameDraft, "kind" | "id" | "version" | "bornAtMs" | "ttlMs"> &
  Partial<Pick<FrameDraft, "blobs" | "copyOf" | "isOpen" | "isSettling">> & {
    readonly small: string | Buffer;
  };

/** Measures the parts of a frame. */
export function draftFrame(parts: DraftParts): FrameDraft {
  const { small } = parts;
  return measure(parts, small, typeof small === "string" ? Buffer.byteLength(small) : small.length);
}

const noBlobs: readonly DraftBlob[] = [];

/** The frame of a task as its fields are now. */
export function draftImage(
  task: Pick<FrameDraft, "id" | "version" | "bornAtMs" | "ttlMs">,
  fields: readonly TaskField[],
): FrameDraft {
  let smallBytes = 0;
  let blobs: DraftBlob[] | undefined;
  for (const field of fields) {
    if (isLarge(field)) {
      const { key, ref, value: content, bytes } = field;
      blobs ??= [];
      blobs.push({ key, ref, content, bytes, field });
    } else smallBytes += memberBytes(field);
  }
  const { id, version, bornAtMs, ttlMs } = task;
  const open = isOpen(fields);
  const parts = {
    kind: frameKinds.image,
    id,
    version,
    bornAtMs,
    ttlMs,
    blobs: blobs ?? noBlobs,
    isOpen: open,
  };
  // An opening brace in place of the first comma, and a closing one.
  return measure(parts, fields, smallBytes === 0 ? 2 : smallBytes + 1);
}

function measure(parts: Omit<DraftParts, "small">, small: SmallFields, smallBytes: number): FrameDraft {
  const { kind, id, version, bornAtMs, ttlMs, blobs = noBlobs } = parts;
  let metaBytes = META_FIXED_BYTES + id.bytes + smallBytes;
  let blobsBytes = 0;
  for (const blob of blobs) {
    metaBytes += BLOB_ENTRY_BYTES + Buffer.byteLength(blob.key);
    if (blob.ref === undefined) blobsBytes += blob.bytes;
  }
  return {
    kind,
    id,
    version,
    bornAtMs,
    ttlMs,
    small,
    blobs,
    metaBytes,
    blobsBytes,
    bytes: frameBytes({ metaBytes, blobsBytes }, 0),
    isOpen: parts.isOpen ?? false,
    copyOf: parts.copyOf,
    isSettling: parts.isSettling ?? false,
  };
}
