import { defineProject, type UserWorkspaceConfig } from "vitest/config";

import { maxWorkers } from "../../vitest.base.ts";

const config: UserWorkspaceConfig = defineProject({
  test: {
    name: "store-postgres",
    maxWorkers,
    include: ["test/**/*.test.ts"],
    // One server for all files: found, or started, once.
    globalSetup: ["test/support/find-server.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
});

export default config;
