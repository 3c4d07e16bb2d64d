import type { StoreFactory } from "@longjobs/conformance";

import { MapTaskStore } from "../support/map-task-store.ts";

const factory: StoreFactory = () => {
  let nowMs = Date.now();
  return {
    store: new MapTaskStore({ now: () => nowMs }),
    advanceTime: (ms) => {
      nowMs += ms;
    },
  };
};

// #region report
import { checkTaskStore } from "@longjobs/conformance";

const report = await checkTaskStore("MapTaskStore", factory);
console.log(report.toTable());
process.exitCode = report.ok ? 0 : 1;
// #endregion
