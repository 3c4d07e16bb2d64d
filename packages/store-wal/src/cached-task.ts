import type { TaskRecord } from "@longjobs/core";
import type { EncodedId } from "./encode-id.ts";
import type { BlobRef } from "./log-segment.ts";
import { encodeFields, isLarge, type TaskField } from "./task-fields.ts";

const none: readonly TaskField[] = [];

/** A task in memory, as it was last flushed. */
export class CachedTask {
  /** Absent while a large field has not been read. Frozen: served as it is. */
  readonly record: TaskRecord | undefined;
  readonly id: EncodedId;
  /** Bytes of JSON text that `record` and the small fields stand for. */
  readonly bytes: number;
  #fields: readonly TaskField[] | undefined;
  /** Those of the fields that lie apart, while the others are not encoded. */
  readonly #large: readonly TaskField[];

  private constructor(
    { record, id, bytes }: Pick<CachedTask, "record" | "id" | "bytes">,
    fields: readonly TaskField[] | undefined,
    large: readonly TaskField[],
  ) {
    this.record = record;
    this.id = id;
    this.bytes = bytes;
    this.#fields = fields;
    this.#large = large;
  }

  /** A task that is likely to be written again. */
  static withFields(
    task: Pick<CachedTask, "record" | "id" | "bytes">,
    fields: readonly TaskField[],
  ): CachedTask {
    return new CachedTask(task, fields, none);
  }

  /** A task that is read, if anything: only a further write needs its fields, and takes much more memory with them. */
  static ofRecord(
    task: Pick<CachedTask, "id" | "bytes"> & { readonly record: TaskRecord },
    fields: readonly TaskField[],
  ): CachedTask {
    return new CachedTask(task, undefined, fields.some(isLarge) ? fields.filter(isLarge) : none);
  }

  /** What the next write starts from. */
  get fields(): readonly TaskField[] {
    return (this.#fields ??= this.record === undefined ? none : encodeFields(this.record, this.#large));
  }

  /** Compaction has moved the value of a large field. */
  moved(key: string, ref: BlobRef): void {
    const field = (this.#fields ?? this.#large).find((candidate) => candidate.key === key);
    if (field?.ref !== undefined) field.ref = ref;
  }
}
