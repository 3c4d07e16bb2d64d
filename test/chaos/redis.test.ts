import { withOwnServers } from "../../packages/store-redis/test/support/find-redis.ts";
import { chaosTest } from "./chaos.ts";
import { startRedisBackend } from "./redis-backend.ts";

withOwnServers("a fleet on Redis", () => chaosTest("Redis", startRedisBackend));
