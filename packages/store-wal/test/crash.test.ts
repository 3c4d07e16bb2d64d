import type { TaskRecord } from "@longjobs/core";
import { expect, test } from "vitest";
import { ChildStore } from "./support/child-store.ts";
import { openStore } from "./support/open-store.ts";
import { bigResult, record } from "./support/records.ts";
import { tempDir } from "./support/temp-dir.ts";

test(
  "a task that was acknowledged before SIGKILL is there afterwards, deep-equal (C21)",
  { timeout: 60_000 },
  async () => {
    const dir = tempDir();
    for (const fsync of [true, false]) {
      const child = await ChildStore.start();
      await child.ask({ ask: "open", options: { dir, fsync } });
      const taskId = `fsync-${fsync}`;
      const fields: Partial<TaskRecord> = { status: "completed", result: bigResult(10_000) };
      expect(await child.ask({ ask: "create", taskId, fields })).toEqual({ told: "created", taskId });
      await child.kill();
      const { store, errors } = await openStore(dir);
      expect(await store.get(taskId)).toEqual(record(taskId, fields));
      expect(errors).toEqual([]);
      await store.close();
    }
  },
);

// More in a long run: LONGJOBS_KILLS=200.
const kills = Number(process.env["LONGJOBS_KILLS"] ?? 20);

test(
  "killed at random again and again under load, with small files and compaction, the log keeps every acknowledged version",
  { timeout: 60_000 + kills * 10_000 },
  async () => {
    const dir = tempDir();
    const options = { dir, segmentBytes: 64 * 1024, compactionFloorBytes: 64 * 1024 };
    const acknowledged = new Map<string, number>();
    let next = ChildStore.start();
    for (let kill = 0; kill < kills; kill += 1) {
      const child = await next;
      next = ChildStore.start();
      expect(await child.ask({ ask: "open", options })).toEqual({ told: "opened" });
      let left = 1 + Math.floor(Math.random() * 400);
      const enough = child.hears((tell) => tell.told === "wrote" && (left -= 1) === 0);
      child.say({ ask: "load", prefix: `k${kill}`, writers: 8 });
      await enough;
      await child.kill();
      for (const tell of child.told) {
        expect(tell.told, JSON.stringify(tell)).not.toBe("failed");
        if (tell.told === "wrote") acknowledged.set(tell.taskId, tell.version);
      }

      const { store, errors } = await openStore(dir, { ...options, cacheBytes: 0 });
      expect(errors, `after kill ${kill}`).toEqual([]);
      for (const [taskId, version] of acknowledged) {
        const found = await store.get(taskId);
        // One more write may have happened, unheard; the next one of its task waits until it has been told.
        expect([version, version + 1], `${taskId} after kill ${kill}`).toContain(found?.version);
        if (found !== undefined && found.version > 1) expect(found.progress).toEqual({ done: found.version });
        acknowledged.set(taskId, found?.version ?? 0);
      }
      await store.close();
    }
    await (await next).kill();
  },
);
