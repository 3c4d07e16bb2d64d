import type { StorePlace } from "../../examples/load-balanced/src/open-store.ts";
import type { Version } from "./history.ts";

/** The one record without an end: the secret that the ids of calls with a key are made with. */
export const lastingTask = "longjobs.idempotency-secret";

/** A server of the test's own that the instances keep their tasks in, and that keeps everything it was told. */
export interface Backend {
  readonly kind: StorePlace["kind"];
  readonly port: number;
  /** Its address by way of another port. */
  urlAt(port: number): string;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on what it has on disk. */
  restart(): Promise<void>;
  /** Stops its clock and keeps its connections. */
  pause(): void;
  resume(): void;
  /** Every state that a record had, of each task in order, as the server itself has kept it. */
  readVersions(): Promise<Version[]>;
  /** What would stay for ever and has no reason to. */
  readLasting(): Promise<string[]>;
  /** Ends it and removes what it has on disk. */
  remove(): Promise<void>;
}
