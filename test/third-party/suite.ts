// The test file of a third party: copied beside the packed packages as `suite.test.ts`, and run by `node --test`.
import { describe, it } from "node:test";
import { runTaskStoreConformance } from "@longjobs/conformance";
import { factory, name, options } from "./under-test.ts";

runTaskStoreConformance(name, factory, { runner: { describe, it, skip: it.skip }, ...options });
