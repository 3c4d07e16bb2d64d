// Prints "passed failed skipped" of a vitest JSON report; a missing report is one failure.
import { readFileSync } from "node:fs";

try {
  const report = JSON.parse(readFileSync(process.argv[2], "utf8"));
  const skipped = report.numPendingTests + report.numTodoTests;
  // A file that does not load has no tests of its own to fail.
  const brokenFiles = report.testResults.filter(
    (file) => file.status === "failed" && file.assertionResults.length === 0,
  );
  console.log(report.numPassedTests, report.numFailedTests + brokenFiles.length, skipped);
} catch (error) {
  console.error(error);
  console.log(0, 1, 0);
}
