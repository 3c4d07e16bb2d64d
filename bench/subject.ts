import type { TaskPatch, TaskRecord } from "@longjobs/core";

/** Something that can keep tasks, opened on an empty folder. */
export interface Subject {
  readonly name: string;
  open(dir: string): Promise<OpenSubject>;
}

/** The operations of one lifecycle. */
export interface OpenSubject {
  create(record: TaskRecord): Promise<void>;
  get(taskId: string): Promise<unknown>;
  /** Resolves to the version after the update. */
  update(taskId: string, patch: TaskPatch, expectedVersion: number): Promise<number>;
  close(): Promise<void>;
}
