import { defineConfig } from "vitest/config";
import { maxWorkers } from "./vitest.base.ts";

const report = process.env["LONGJOBS_TEST_REPORT"];

export default defineConfig({
  test: {
    maxWorkers,
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    projects: [
      "packages/*",
      {
        test: {
          name: "repository",
          maxWorkers,
          include: ["test/**/*.test.ts"],
          globalSetup: ["packages/store-postgres/test/support/find-server.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
