import { base } from "../../tsdown.base.ts";

export default { ...base, entry: ["src/index.ts", "src/testing.ts"] };
