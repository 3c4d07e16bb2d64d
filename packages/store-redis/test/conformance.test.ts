import { runTaskStoreConformance } from "@longjobs/conformance";
import { afterAll, describe, it } from "vitest";
import { findRedis, withRedis } from "./support/find-redis.ts";
import { makeSubject } from "./support/subject.ts";

const found = await findRedis();
afterAll(() => found?.stop());

withRedis("one server", found, (url) => {
  const ports = [Number(new URL(url).port || 6379)];
  runTaskStoreConformance("RedisTaskStore", () => makeSubject(ports), {
    runner: { describe, it, skip: it.skip },
    profile: "shared",
  });
});
