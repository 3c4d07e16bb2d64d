import { runTaskStoreConformance } from "@longjobs/conformance";
import { describe, it } from "vitest";

import { MemoryTaskStore } from "../src/index.ts";

runTaskStoreConformance(
  "MemoryTaskStore",
  () => {
    let nowMs = Date.now();
    const store = new MemoryTaskStore({ now: () => nowMs });
    return {
      store,
      advanceTime: (ms) => {
        nowMs += ms;
      },
    };
  },
  { runner: { describe, it, skip: it.skip } },
);
