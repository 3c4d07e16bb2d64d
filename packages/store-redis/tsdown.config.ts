import { base } from "../../tsdown.base.ts";

export default base;
