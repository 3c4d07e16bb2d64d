/** Where failures go that no caller is waiting for. */
export type ErrorListener = (error: unknown) => void;

/**
 * Reports a background failure: to the listener, else to the global `reportError`, else to the console.
 * A listener that throws must not stop the housekeeping that reports to it: its error goes to the console.
 */
export function reportBackgroundError(error: unknown, onError?: ErrorListener): void {
  if (onError === undefined) return reportGlobally(error);
  try {
    onError(error);
  } catch (listenerError) {
    reportGlobally(listenerError);
    reportGlobally(error);
  }
}

function reportGlobally(error: unknown): void {
  const report = (globalThis as { reportError?: (error: unknown) => void }).reportError;
  // oxlint-disable-next-line no-console -- the last resort: a failure is never swallowed
  if (report === undefined) console.error(error);
  else report(error);
}
