import { readFile } from "node:fs/promises";

import { expect, test } from "vitest";

test("the surface is what was decided: a red pin needs a decision and a changeset", async () => {
  expect(Object.keys(await import("../src/index.ts")).toSorted()).toEqual([
    "LeaseDeadlines",
    "LongJobsError",
    "MemoryTaskStore",
    "TASKS_EXTENSION_ID",
    "TaskLifecycle",
    "TaskWatchers",
    "TaskWriter",
    "applyTaskPatch",
    "assertClaim",
    "assertIdempotencyKey",
    "assertInputSupported",
    "assertLeaseMs",
    "canLease",
    "canWatch",
    "canonicalJson",
    "defaultJsonLimits",
    "dispatchOwner",
    "fingerprintJson",
    "freezeParsedJson",
    "holdsLease",
    "isClaimable",
    "isExclusive",
    "isExpired",
    "isLongJobsError",
    "isOwnerGone",
    "isProtocolError",
    "isTaskId",
    "isTerminal",
    "jsonEquals",
    "liveOwners",
    "longJobsErrorCodes",
    "newLease",
    "normalizeJson",
    "normalizeJsonObject",
    "readRequestContext",
    "rejectedOutcome",
    "repeatRequest",
    "reportBackgroundError",
    "scopeResolver",
    "setOwn",
    "storeErrors",
    "toDetailedTask",
    "toTask2025",
    "toTaskView",
    "toToolError",
  ]);
});

test("the package has one entry", async () => {
  const manifest = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as {
    exports: Record<string, unknown>;
  };
  expect(Object.keys(manifest.exports)).toEqual([".", "./package.json"]);
  expect(manifest.exports["."]).toEqual({ types: "./dist/index.d.ts", default: "./dist/index.js" });
});
