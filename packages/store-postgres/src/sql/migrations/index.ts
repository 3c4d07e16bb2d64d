import type { Statement } from "../statement.ts";
import { tasks } from "./0001-tasks.ts";

/** Every migration, in order; a database at version 1 has had the first. */
export const migrations: readonly Statement[] = [tasks];
