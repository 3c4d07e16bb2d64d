import { isLongJobsError } from "./longjobs-error.ts";

/** Records may be large: no more of them are held at once. */
const readsAtOnce = 8;

/** The ids, each once and in their order, for which `read` does not reject with `unknown_task`. @throws what else it rejects with */
export async function visibleTasks(
  taskIds: readonly string[],
  read: (taskId: string) => Promise<unknown>,
): Promise<readonly string[]> {
  const ids = [...new Set(taskIds)];
  const visible: string[] = [];
  for (let from = 0; from < ids.length; from += readsAtOnce) {
    const some = ids.slice(from, from + readsAtOnce);
    const seen = await Promise.all(some.map((taskId) => isVisible(taskId, read)));
    visible.push(...some.filter((_taskId, index) => seen[index]));
  }
  return visible;
}

async function isVisible(taskId: string, read: (taskId: string) => Promise<unknown>): Promise<boolean> {
  try {
    await read(taskId);
    return true;
  } catch (error) {
    if (isLongJobsError(error, "unknown_task")) return false;
    throw error;
  }
}
