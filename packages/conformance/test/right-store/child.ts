import type { StoreFactory } from "../../src/index.ts";
import { MapTaskStore } from "../support/map-task-store.ts";

export const name = "MapTaskStore";

export const factory: StoreFactory = () => {
  let nowMs = Date.now();
  return {
    store: new MapTaskStore({ now: () => nowMs }),
    advanceTime: (ms) => {
      nowMs += ms;
    },
  };
};
