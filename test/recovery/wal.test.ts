import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { recoveryScenarios } from "./scenarios.ts";

recoveryScenarios("store-wal", async () => {
  const dir = await mkdtemp(join(tmpdir(), "longjobs-recovery-"));
  return { place: { kind: "wal", dir }, remove: () => rm(dir, { recursive: true }) };
});
