import type { EncodedPatch } from "./encode-patch.ts";
import type { Statement } from "./sql/statement.ts";
import { updateTask } from "./sql/update-task.ts";

/** Shapes that are remembered; an engine writes some thirty. */
const MAX_SHAPES = 500;

/** The statements for patches, one for each set of fields that a patch names. */
export class PatchStatements {
  readonly #statements = new Map<string, Statement>();

  statementFor({ columns, others }: EncodedPatch, counts: boolean): Statement {
    const shape = `${columns.join()}${others === undefined ? "" : "+"}${counts ? "#" : ""}`;
    const known = this.#statements.get(shape);
    if (known !== undefined) return known;
    const statement = updateTask({ columns, others: others !== undefined, counts });
    if (this.#statements.size < MAX_SHAPES) this.#statements.set(shape, statement);
    return statement;
  }
}
