import { draftFrame, type FrameDraft } from "./draft-frame.ts";
import type { FrameMeta } from "./decode-frame.ts";
import { frameKinds } from "./frame-format.ts";
import type { EncodedId } from "./encode-id.ts";

/** The segments, by key, in which frames of a deleted task may lie. */
export interface TombstoneRange {
  readonly since: number;
  readonly until: number;
}

/**
 * The deletion of a task. It says where older frames of the task may be, so that it can go when those
 * segments are gone: without it they would bring the task back.
 */
export function draftTombstone(
  task: { id: EncodedId; bornAtMs: number; ttlMs: number | null },
  range: TombstoneRange,
  kind: Pick<Partial<FrameDraft>, "copyOf" | "isSettling"> = {},
): FrameDraft {
  return draftFrame({
    kind: frameKinds.tombstone,
    version: 0,
    ...task,
    small: JSON.stringify([range.since, range.until]),
    ...kind,
  });
}

export function decodeTombstone(source: Buffer, meta: FrameMeta): TombstoneRange {
  const text = source.toString("utf8", meta.smallAt, meta.smallAt + meta.smallBytes);
  const [since = 0, until = Number.MAX_SAFE_INTEGER] = JSON.parse(text) as number[];
  return { since, until };
}
