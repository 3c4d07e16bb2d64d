/** A clock that stands still until it is moved. */
export interface TestClock {
  readonly now: () => number;
  readonly advance: (ms: number) => void;
}

export function startClock(startMs: number = Date.UTC(2026, 6, 28)): TestClock {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    advance: (ms) => {
      nowMs += ms;
    },
  };
}
