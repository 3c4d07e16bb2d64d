import { describe, expect, test, vi } from "vitest";

import { isLongJobsError, LongJobsError, longJobsErrorCodes, reportBackgroundError } from "../src/index.ts";

describe("LongJobsError", () => {
  test("is data a model can repair: the envelope has no stack and no cause", () => {
    const error = new LongJobsError("no_space", "The disk is full.", {
      retryable: true,
      param: "dir",
      recoveryHint: "Free some space.",
      partial: { cursor: 1 },
      cause: new Error("ENOSPC"),
    });
    expect(JSON.parse(JSON.stringify(error))).toStrictEqual({
      code: "no_space",
      message: "The disk is full.",
      retryable: true,
      param: "dir",
      recoveryHint: "Free some space.",
      partial: { cursor: 1 },
    });
    expect(error.cause).toMatchObject({ message: "ENOSPC" });
  });

  test("leaves out what it was not given", () => {
    expect(new LongJobsError("expired", "x").toJSON()).toStrictEqual({
      code: "expired",
      message: "x",
      retryable: false,
    });
  });

  test("is recognised by brand and code; what only looks like it is not", () => {
    const error = new LongJobsError("my_own_code", "x");
    expect(isLongJobsError(error)).toBe(true);
    expect(isLongJobsError(error, "my_own_code")).toBe(true);
    expect(isLongJobsError(error, "expired")).toBe(false);
    const lookalikes = [
      new Error("x"),
      { code: "expired" },
      Object.assign(new Error("x"), error),
      Object.create(error),
      null,
      "expired",
    ];
    for (const lookalike of lookalikes) expect(isLongJobsError(lookalike)).toBe(false);
  });

  test("codes are lower snake case, each once", () => {
    for (const code of longJobsErrorCodes) expect(code).toMatch(/^[a-z]+(?:_[a-z0-9]+)*$/);
    expect(new Set(longJobsErrorCodes).size).toBe(longJobsErrorCodes.length);
  });
});

describe("reportBackgroundError", () => {
  test("goes to the listener; one that throws loses nothing", () => {
    const reported: unknown[] = [];
    vi.stubGlobal("reportError", (error: unknown) => reported.push(error));
    const heard: unknown[] = [];
    reportBackgroundError("first", (error) => heard.push(error));
    reportBackgroundError("second", () => {
      throw new Error("broken listener");
    });
    reportBackgroundError("third");
    vi.unstubAllGlobals();
    expect(heard).toEqual(["first"]);
    expect(reported).toMatchObject([{ message: "broken listener" }, "second", "third"]);
  });

  test("goes to the console where there is no global reportError", () => {
    const told = vi.spyOn(console, "error").mockImplementation(() => undefined);
    reportBackgroundError("lost");
    expect(told).toHaveBeenCalledWith("lost");
    told.mockRestore();
  });
});
