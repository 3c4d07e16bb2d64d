import { defineConfig } from "vitest/config";

const report = process.env["LONGJOBS_TEST_REPORT"];

export default defineConfig({
  test: {
    reporters: report === undefined ? ["default"] : ["default", ["json", { outputFile: report }]],
    projects: [
      "packages/*",
      {
        test: {
          name: "repository",
          include: ["test/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
    ],
  },
});
