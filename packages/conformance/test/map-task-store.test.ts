// #region suite
import { runTaskStoreConformance } from "@longjobs/conformance";
import { describe, it } from "vitest";

import { MapTaskStore } from "./support/map-task-store.ts";

runTaskStoreConformance(
  "MapTaskStore",
  () => {
    let nowMs = Date.now();
    return {
      store: new MapTaskStore({ now: () => nowMs }),
      advanceTime: (ms) => {
        nowMs += ms;
      },
    };
  },
  { runner: { describe, it } },
);
// #endregion
