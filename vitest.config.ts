import { defineConfig } from "vitest/config";

const report = process.env["LONGJOBS_TEST_REPORT"];

export default defineConfig({
  test: {
    // Most of what takes long waits for processes, disks and servers: more workers than processors wait side by side.
    maxWorkers: 4,
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    projects: [
      "packages/*",
      {
        test: {
          name: "repository",
          include: ["test/**/*.test.ts"],
          globalSetup: ["packages/store-postgres/test/support/find-server.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
