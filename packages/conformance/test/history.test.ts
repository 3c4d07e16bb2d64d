import { LongJobsError } from "@longjobs/core";
import { describe, expect, test } from "vitest";

import { findHistoryFaults, TaskHistory, type HistoryEvent, type WriteOutcome } from "../src/index.ts";

const birth = { version: 10, mark: "birth" };

function write(
  mark: string,
  expectedVersion: number,
  outcome: WriteOutcome,
  begin: number,
  end: number,
): HistoryEvent {
  return { kind: "write", mark, expectedVersion, outcome, begin, end };
}

function read(version: number, mark: string, begin: number, end: number): HistoryEvent {
  return { kind: "read", version, mark, begin, end };
}

describe("possible histories", () => {
  test.each<[string, HistoryEvent[]]>([
    ["nothing happened", [read(10, "birth", 1, 2)]],
    [
      "a write between two reads",
      [read(10, "birth", 1, 2), write("a", 10, "acknowledged", 3, 4), read(11, "a", 5, 6)],
    ],
    [
      "a read beside the write sees the old version",
      [write("a", 10, "acknowledged", 1, 4), read(10, "birth", 2, 5), read(11, "a", 6, 7)],
    ],
    [
      "a read beside the write sees the new version",
      [write("a", 10, "acknowledged", 1, 4), read(11, "a", 2, 3), read(11, "a", 5, 6)],
    ],
    ["an ambiguous write that happened", [write("a", 10, "ambiguous", 1, 2), read(11, "a", 3, 4)]],
    ["an ambiguous write that did not happen", [write("a", 10, "ambiguous", 1, 2), read(10, "birth", 3, 4)]],
    [
      "an ambiguous write that lost",
      [write("a", 10, "ambiguous", 1, 2), write("b", 10, "acknowledged", 3, 4), read(11, "b", 5, 6)],
    ],
    [
      "an ambiguous write under an acknowledged one",
      [write("a", 10, "ambiguous", 1, 2), write("b", 11, "acknowledged", 3, 4), read(12, "b", 5, 6)],
    ],
  ])("%s", (_name, events) => {
    expect(findHistoryFaults(birth, events)).toEqual([]);
  });
});

describe("impossible histories", () => {
  test.each<[string, HistoryEvent[]]>([
    [
      "one version acknowledged to two writers",
      [write("a", 10, "acknowledged", 1, 3), write("b", 10, "acknowledged", 2, 4), read(11, "a", 5, 6)],
    ],
    ["a refused write is seen", [write("a", 10, "refused", 1, 2), read(11, "a", 3, 4)]],
    ["a version that nobody wrote", [read(11, "ghost", 1, 2)]],
    [
      "another writer's mark",
      [write("a", 10, "acknowledged", 1, 2), write("b", 10, "refused", 1, 2), read(11, "b", 3, 4)],
    ],
    [
      "one version with two marks",
      [
        write("a", 10, "ambiguous", 1, 2),
        write("b", 10, "ambiguous", 1, 2),
        read(11, "a", 3, 4),
        read(11, "b", 5, 6),
      ],
    ],
    ["an acknowledged write is lost", [write("a", 10, "acknowledged", 1, 2), read(10, "birth", 3, 4)]],
    [
      "a read goes back behind another read",
      [
        write("a", 10, "acknowledged", 1, 8),
        read(11, "a", 2, 3),
        read(10, "birth", 4, 5),
        read(11, "a", 9, 10),
      ],
    ],
    ["a hole between the versions", [write("b", 11, "acknowledged", 1, 2), read(12, "b", 3, 4)]],
  ])("%s", (_name, events) => {
    expect(findHistoryFaults(birth, events)).not.toEqual([]);
  });
});

describe("TaskHistory", () => {
  test("tells acknowledged, refused and ambiguous writes apart", async () => {
    const history = new TaskHistory();
    const refusal = new LongJobsError("version_conflict", "stale");
    const doubt = new LongJobsError("store_unavailable", "connection lost");
    expect(await history.write("a", 10, () => Promise.resolve(11))).toBe("acknowledged");
    expect(await history.write("b", 10, () => Promise.reject(refusal))).toBe("refused");
    expect(await history.write("c", 11, () => Promise.reject(doubt))).toBe("ambiguous");
    expect(await history.write("d", 11, () => Promise.reject(new Error("socket hang up")))).toBe("ambiguous");
  });

  test("a write that says itself what it made is an acknowledged write; nothing made is no write", async () => {
    const history = new TaskHistory();
    await history.acquire(() => Promise.resolve({ version: 11, mark: "claim" }));
    await history.acquire(() => Promise.resolve(undefined));
    expect(history.events).toEqual([write("claim", 10, "acknowledged", 1, 2)]);
  });

  test("records begin and end of each call on one counter", async () => {
    const history = new TaskHistory();
    await history.write("a", 10, async () => {
      await history.read(() => Promise.resolve({ version: 10, mark: "birth" }));
      return 11;
    });
    expect(history.events).toEqual([read(10, "birth", 2, 3), write("a", 10, "acknowledged", 1, 4)]);
  });
});
