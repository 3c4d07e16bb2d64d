import { reportBackgroundError, type ErrorListener } from "@longjobs/core";

/** What failed in the background. */
export type Subject = "listen" | "notify" | "look";

/**
 * Reports failures of the background, the first of each kind at once and further ones at most once per interval: an
 * outage is one line, not one for each attempt.
 */
export class QuietReporter {
  readonly #intervalMs: number;
  readonly #onError: ErrorListener | undefined;
  readonly #reportedAtMs = new Map<Subject, number>();

  constructor(intervalMs: number, onError: ErrorListener | undefined) {
    this.#intervalMs = intervalMs;
    this.#onError = onError;
  }

  report(subject: Subject, error: unknown): void {
    const nowMs = performance.now();
    const lastMs = this.#reportedAtMs.get(subject);
    if (lastMs !== undefined && nowMs - lastMs < this.#intervalMs) return;
    this.#reportedAtMs.set(subject, nowMs);
    reportBackgroundError(error, this.#onError);
  }
}
