import { project } from "../../vitest.base.ts";

export default project("store-redis");
