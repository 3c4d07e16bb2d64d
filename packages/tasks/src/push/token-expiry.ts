import type { AuthInfo } from "@longjobs/core";
import type { TaskPush } from "./task-push.ts";

/** The longest time that a timer takes. */
const maxTimerMs = 2_147_483_647;

/**
 * Calls `onExpired` when the token that a request came with has expired: a request with that token would be refused from then on. One that
 * was let in with an expired token, or whose token does not say, is not judged here. The returned function ends it.
 */
export function watchExpiry(
  { expiresAt }: Pick<AuthInfo, "expiresAt">,
  { now, schedule }: Pick<TaskPush, "now" | "schedule">,
  onExpired: () => void,
): () => void {
  const expiresAtMs = (expiresAt ?? Number.NaN) * 1_000;
  if (!(expiresAtMs > now())) return () => undefined;
  const wait = (): (() => void) => schedule(look, Math.min(expiresAtMs - now(), maxTimerMs), false);
  const look = (): void => {
    if (now() < expiresAtMs) cancel = wait();
    else onExpired();
  };
  let cancel = wait();
  return () => cancel();
}
