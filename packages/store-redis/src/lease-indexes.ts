import { isTerminal, type TaskRecord } from "@longjobs/core";
import { encodeText } from "./encode-text.ts";

/** The index of open tasks whose cancel was requested: anyone may take those. */
export const CANCELLED_INDEX = "cancelled";

/** The index of open tasks without a tool. */
export const TOOLLESS_INDEX = "due:";

/** More tools than any server has; beyond it the ones learned first are forgotten, and learned again when they are met. */
const MOST_TOOLS = 128;

/** The index of the open tasks of one tool. */
export function indexOfTool(tool: string): string {
  return TOOLLESS_INDEX + encodeText(tool);
}

/** The index that a task has by what it does, whether it is in it or not. */
export function homeIndex(work: TaskRecord["work"]): string {
  const tool: unknown = work?.tool;
  return typeof tool === "string" ? indexOfTool(tool) : TOOLLESS_INDEX;
}

/** The index that a record is in, or `undefined` when no claim takes it (C25). */
export function indexOf({ status, kind, cancelRequestedAt, work }: TaskRecord): string | undefined {
  if (isTerminal(status) || kind !== undefined) return undefined;
  return cancelRequestedAt === undefined ? homeIndex(work) : CANCELLED_INDEX;
}

/**
 * The indexes this store has met. A script may touch only keys that it was given, and an update does not say
 * which tool its task has: it is given the indexes of all tools known here, and answers with the right one when
 * that is not among them.
 */
export class LeaseIndexes {
  readonly #tools = new Set<string>();
  #names: readonly string[] = [CANCELLED_INDEX, TOOLLESS_INDEX];

  /** Every index known, those that always exist first. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** Remembers indexes of tools; the others are always known. */
  learn(names: Iterable<string>): void {
    const before = this.#tools.size;
    for (const name of names) {
      if (name !== "" && name !== CANCELLED_INDEX && name !== TOOLLESS_INDEX) this.#tools.add(name);
    }
    if (this.#tools.size === before) return;
    for (const name of this.#tools) {
      if (this.#tools.size <= MOST_TOOLS) break;
      this.#tools.delete(name);
    }
    this.#names = [CANCELLED_INDEX, TOOLLESS_INDEX, ...this.#tools];
  }
}
