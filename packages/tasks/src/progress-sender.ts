import type { TaskProgress } from "@longjobs/core";

/** Sends a notification of the protocol while the request is open. */
export type Notify = (notification: object) => Promise<void>;

/**
 * Turns progress into `notifications/progress`, for a client that gave a token. They must grow, so a step back
 * is not sent. `further` goes into the params. `undefined` without a token: then nothing may be sent.
 */
export function progressSender(
  progressToken: string | number | undefined,
  notify: Notify,
  further: object = {},
): ((progress: TaskProgress) => void) | undefined {
  if (progressToken === undefined) return undefined;
  let sent = 0;
  return ({ message, done, total }) => {
    const progress = done ?? sent + 1;
    if (progress <= sent) return;
    sent = progress;
    const params = {
      ...further,
      progressToken,
      progress,
      ...(total === undefined ? {} : { total }),
      ...(message === undefined ? {} : { message }),
    };
    // A client that has gone misses nothing: its signal ends the work.
    notify({ method: "notifications/progress", params }).catch(() => undefined);
  };
}
