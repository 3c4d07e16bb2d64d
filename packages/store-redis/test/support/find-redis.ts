import { Redis } from "ioredis";
import { describe, it } from "vitest";
import { hasRedisServer, startRedisServer } from "./redis-server.ts";

/** Where a suite finds Redis, and how it lets go of it. */
export interface FoundRedis {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/**
 * The server of `LONGJOBS_REDIS_URL`, else the one of this machine, else one of our own. A server that was asked
 * for and is not there is no reason to use another: then there is none.
 */
export async function findRedis(): Promise<FoundRedis | undefined> {
  const wanted = process.env["LONGJOBS_REDIS_URL"];
  const url = wanted ?? "redis://127.0.0.1:6379";
  if (await answers(url)) return { url, stop: () => Promise.resolve() };
  if (wanted !== undefined) throw new Error("The Redis of LONGJOBS_REDIS_URL does not answer.");
  return hasRedisServer() ? startRedisServer() : undefined;
}

const nowhere = "no Redis on 127.0.0.1:6379, no LONGJOBS_REDIS_URL, and no redis-server on the PATH";

/** A group of tests that need a server: skipped without one, or failed where one must be there. */
export function withRedis(name: string, found: FoundRedis | undefined, tests: (url: string) => void): void {
  if (found !== undefined) describe(name, () => tests(found.url));
  else withoutRedis(name, nowhere);
}

/** A group of tests that start servers of their own, to kill and pause them. */
export function withOwnServers(name: string, tests: () => void): void {
  if (hasRedisServer()) describe(name, tests);
  else withoutRedis(name, "no redis-server on the PATH");
}

function withoutRedis(name: string, reason: string): void {
  if (process.env["LONGJOBS_REQUIRE_SERVICES"] === "1") {
    it(`${name}: there is a Redis server`, () => {
      throw new Error(`LONGJOBS_REQUIRE_SERVICES is set, and there is ${reason}.`);
    });
    return;
  }
  console.log(`store-redis: ${name}: skipped. There is ${reason}.`);
  describe.skip(`${name} (${reason})`, () => {
    it("runs where there is a Redis server", () => undefined);
  });
}

async function answers(url: string): Promise<boolean> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null, connectTimeout: 2_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.ping()) === "PONG";
  } catch {
    // Any failure means the same: not this one.
    return false;
  } finally {
    client.disconnect();
  }
}
