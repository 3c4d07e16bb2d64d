import type { FrameDraft } from "./draft-frame.ts";
import type { BlobRef, Damage } from "./log-segment.ts";
import type { PlacedFrame } from "./log-writer.ts";
import type { TaskEntry } from "./task-index.ts";

/** The index entry of a frame that has just become durable. */
export function entryOfFrame(
  draft: FrameDraft,
  placed: PlacedFrame,
  sinceSegment: number,
  damage: Damage | null = null,
): TaskEntry {
  const { segment, offset, bytes, sequence } = placed;
  const { version, bornAtMs, ttlMs } = draft;
  return {
    segment,
    offset,
    bytes,
    sequence,
    version,
    bornAtMs,
    ttlMs,
    blobs: outside(draft),
    sinceSegment,
    damage,
  };
}

/** Tells the large fields of a frame where their values are now; their text is no longer needed. */
export function settleFields(draft: FrameDraft, placed: PlacedFrame): void {
  if (draft.blobs.length === 0) return;
  for (const [index, { field }] of draft.blobs.entries()) {
    const ref = placed.inline[index];
    if (field === undefined || ref === undefined) continue;
    field.ref = ref;
    field.value = undefined;
  }
}

function outside({ blobs }: FrameDraft): readonly BlobRef[] | null {
  if (blobs.length === 0) return null;
  const refs = blobs.map(({ ref }) => ref).filter((ref) => ref !== undefined);
  return refs.length === 0 ? null : refs;
}
