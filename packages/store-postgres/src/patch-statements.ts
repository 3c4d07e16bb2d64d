import type { EncodedPatch } from "./encode-fields.ts";
import type { Statement } from "./sql/statement.ts";
import { updateTask, type PatchShape } from "./sql/update-task.ts";

/** Shapes that are remembered; an engine writes some thirty. */
const MAX_SHAPES = 500;

/** The statements for patches, one for each set of fields that a patch names. */
export class PatchStatements {
  readonly #statements = new Map<string, Statement>();

  statementFor({ cells, others }: EncodedPatch, size: PatchShape["size"]): Statement {
    const columns = cells.map(({ column }) => column);
    const shape = [...columns, ...(others === undefined ? [] : ["others"]), size].join();
    const known = this.#statements.get(shape);
    if (known !== undefined) return known;
    const statement = updateTask({ columns, others: others !== undefined, size });
    if (this.#statements.size < MAX_SHAPES) this.#statements.set(shape, statement);
    return statement;
  }
}
