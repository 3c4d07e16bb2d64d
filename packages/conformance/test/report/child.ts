import { factory } from "../right-store/child.ts";

// #region report
import { checkTaskStore } from "@longjobs/conformance";

const report = await checkTaskStore("MapTaskStore", factory);
console.log(report.toTable());
process.exitCode = report.ok ? 0 : 1;
// #endregion
