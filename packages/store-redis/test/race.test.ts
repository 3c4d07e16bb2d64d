import { isLongJobsError } from "@longjobs/core";
import { afterAll, describe, expect, it, vi } from "vitest";
import type { RedisTaskStore } from "../src/index.ts";
import { findRedis, withOwnServers, withRedis } from "./support/find-redis.ts";
import { record } from "./support/records.ts";
import { freshPrefix, testClient, testServer, testStore } from "./support/store-fixture.ts";
import { waitUntil } from "./support/wait-until.ts";

const found = await findRedis();
afterAll(() => found?.stop());

withRedis("two connections", found, (url) => {
  /** Two stores on the same keys, each with a connection of its own. */
  function pair(): readonly [RedisTaskStore, RedisTaskStore] {
    const keyPrefix = freshPrefix(url);
    return [testStore(url, { keyPrefix }).store, testStore(url, { keyPrefix }).store];
  }

  it("P03: of 50 parallel creates of one id over two connections one is kept, and the others say so", async () => {
    const stores = pair();
    const creates = Array.from({ length: 50 }, (_, index) =>
      stores[index % 2 ? 1 : 0].create(record("keyed", { version: 100 + index })),
    );
    const outcomes = await Promise.allSettled(creates);
    const winners = outcomes.flatMap(({ status }, index) => (status === "fulfilled" ? [100 + index] : []));
    expect(winners).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === "rejected") expect(isLongJobsError(outcome.reason, "task_exists")).toBe(true);
    }
    const versions = await Promise.all(stores.map(async (store) => (await store.get("keyed"))?.version));
    expect(versions).toEqual([winners[0], winners[0]]);
  });

  it("P08: of cancel, complete and fail at one version one wins, 1,000 times over, and the payload is the winner's", async () => {
    const [first, second] = pair();
    const ends = [
      { status: "cancelled" },
      { status: "completed", result: { content: [] } },
      { status: "failed", error: { code: -32_603, message: "failed" } },
    ] as const;
    const rounds = Array.from({ length: 1_000 }, (_, round) => `task-${round}`);
    for (let start = 0; start < rounds.length; start += 50) {
      await Promise.all(
        rounds.slice(start, start + 50).map(async (taskId, round) => {
          await first.create(record(taskId, { work: { tool: "t" }, ttlMs: 60_000 }));
          const outcomes = await Promise.allSettled(
            ends.map((end, index) => ((round + index) % 2 ? first : second).update(taskId, end, 1)),
          );
          const winner = outcomes.findIndex(({ status }) => status === "fulfilled");
          expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
          expect(await second.get(taskId)).toEqual({ ...(await first.get(taskId)), ...ends[winner] });
          const { status, result, error } = (await first.get(taskId)) ?? {};
          expect({ status, result, error }).toEqual({ result: undefined, error: undefined, ...ends[winner] });
        }),
      );
    }
  });

  it("parallel claims over two connections share 200 tasks of three tools: each is taken once", async () => {
    const stores = pair();
    const ids = Array.from({ length: 200 }, (_, index) => `task-${index}`);
    await Promise.all(
      ids.map((taskId, index) => stores[0].create(record(taskId, { work: { tool: `${index % 3}` } }))),
    );
    const taken = await Promise.all(
      Array.from({ length: 8 }, async (_, claimer) => {
        const mine: string[] = [];
        for (let none = 0; none < 3;) {
          const claimed = await stores[claimer % 2 ? 1 : 0].claim(`claimer ${claimer}`, 60_000, {
            limit: 7,
            tools: ["0", "1", "2"],
          });
          if (claimed.length === 0) none += 1;
          mine.push(...claimed.map(({ taskId }) => taskId));
        }
        return mine;
      }),
    );
    expect(taken.flat().toSorted()).toEqual(ids.toSorted());
  });

  describe.each([-5, 5])("a process whose clock is %i minutes off", (minutes) => {
    it("P16: takes no task whose lease is live, and takes it when the server's clock says that it lapsed", async () => {
      const [neighbour, newcomer] = pair();
      const lease = { owner: "neighbour", token: "token", durationMs: 400 };
      await neighbour.create(record("live", { work: { tool: "t" }, lease, ttlMs: 60_000 }));
      vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + minutes * 60_000 });
      try {
        expect(await newcomer.claim("newcomer", 60_000, { limit: 1 })).toEqual([]);
        expect(await newcomer.get("live")).toBeDefined();
        await waitUntil(
          async () => (await newcomer.claim("newcomer", 60_000, { limit: 1, tools: ["t"] })).length === 1,
          "the lease lapses on the server's clock",
          5_000,
        );
      } finally {
        vi.useRealTimers();
      }
    });
  });

  it("P17: with a stale token nothing is written or renewed, and the same worker gets another token", async () => {
    const [first, second] = pair();
    await first.create(record("fenced", { work: { tool: "t" } }));
    const [before] = await first.claim("worker", 1, { limit: 1, tools: ["t"] });
    let after: typeof before;
    await waitUntil(async () => {
      [after] = await second.claim("worker", 60_000, { limit: 1, tools: ["t"] });
      return after !== undefined;
    }, "the lease lapses");
    expect(after?.lease?.token).not.toBe(before?.lease?.token);
    expect(after?.lease?.owner).toBe(before?.lease?.owner);
    expect(await first.renew([{ taskId: "fenced", token: before?.lease?.token ?? "" }], 60_000)).toEqual([
      "fenced",
    ]);
    for (const patch of [{ statusMessage: "late" }, { status: "completed" as const }, { lease: undefined }]) {
      const late = first.update("fenced", patch, before?.version ?? 0);
      await expect(late).rejects.toMatchObject({ code: "version_conflict" });
    }
    expect(await second.get("fenced")).toEqual(after);
  });
});

withOwnServers("ten stores that start at once", () => {
  it("P52: on a server that knows no script, 50 times over, every call succeeds and one format is written", async () => {
    const server = await testServer();
    const client = testClient(server.url);
    const clients = Array.from({ length: 10 }, () => testClient(server.url));
    for (let round = 0; round < 50; round += 1) {
      await client.flushall();
      await client.script("FLUSH");
      const stores = clients.map((each) => testStore(server.url, { client: each, keyPrefix: "start" }).store);
      const creates = stores.map((store, index) =>
        store.create(record(`task-${index}`, { work: { tool: "t" } })),
      );
      await Promise.all([...creates, ...stores.map((store) => store.sweep())]);
      expect(await client.get("start:format")).toBe("1");
      const claimed = await Promise.all(stores.map((store) => store.claim("owner", 60_000, { limit: 10 })));
      expect(claimed.flat()).toHaveLength(10);
      await Promise.all(stores.map((store) => store.close()));
    }
  });
});
