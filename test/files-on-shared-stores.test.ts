import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TaskStore } from "@longjobs/core";
import { createFiles, type Files } from "@longjobs/files";
import { PostgresTaskStore } from "@longjobs/store-postgres";
import { RedisTaskStore } from "@longjobs/store-redis";
import { Client as McpClient } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Redis } from "ioredis";
import { Client, Pool } from "pg";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

interface Place {
  readonly name: string;
  readonly url: string;
  /** A store of its own on what `key` names, as another process has it. */
  readonly open: (url: string, key: string) => Promise<TaskStore>;
  /** Removes everything that `key` names. */
  readonly clear: (url: string, key: string) => Promise<void>;
}

const places: readonly Place[] = [
  {
    name: "Postgres",
    url: process.env["LONGJOBS_POSTGRES_URL"] ?? "postgres://postgres@127.0.0.1:5432/postgres",
    open: async (url, schema) => {
      const pool = new Pool({ connectionString: url, max: 4 });
      const store = new PostgresTaskStore({ pool, schema });
      closers.push(
        () => pool.end(),
        () => store.close(),
      );
      await store.migrate();
      return store;
    },
    clear: async (url, schema) => {
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query(`DROP SCHEMA IF EXISTS "${schema}" CASCADE`);
      await client.end();
    },
  },
  {
    name: "Redis",
    url: process.env["LONGJOBS_REDIS_URL"] ?? "redis://127.0.0.1:6379",
    open: async (url, keyPrefix) => {
      const client = new Redis(url);
      const store = new RedisTaskStore({ client, keyPrefix });
      closers.push(
        () => client.quit(),
        () => store.close(),
      );
      return store;
    },
    clear: async (url, keyPrefix) => {
      const client = new Redis(url);
      const keys = await client.keys(`${keyPrefix}*`);
      if (keys.length > 0) await client.del(...keys);
      await client.quit();
    },
  },
];

async function isThere({ name, url }: Place): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const answers = await new Promise<boolean>((resolve) => {
    const socket = connect(Number(port), hostname, () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.unref();
  });
  if (!answers) console.log(`files on ${name}: skipped. No server at ${url}.`);
  return answers;
}

const mustBeThere = process.env["LONGJOBS_REQUIRE_SERVICES"] === "1";
const found = await Promise.all(
  places.map(async (place) => [place.name, place, mustBeThere || (await isThere(place))] as const),
);

let closers: (() => Promise<unknown>)[] = [];
let dir = "";
let key = "";

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "longjobs-shared-"));
  await mkdir(join(dir, "box"));
  key = `test_${randomBytes(6).toString("hex")}`;
});

afterEach(async () => {
  for (const close of closers.toReversed()) await close();
  closers = [];
  await rm(dir, { recursive: true });
});

interface Instance {
  readonly files: Files;
  readonly call: (name: string, args: object) => Promise<Record<string, unknown>>;
}

/** An instance of the server: a store, files and a client of its own; the directories are shared. */
async function openInstance({ open, url }: Place, options: object = {}): Promise<Instance> {
  const files = createFiles({
    store: await open(url, key),
    staging: join(dir, "staging"),
    roots: { box: { path: join(dir, "box"), write: true } },
    http: { baseUrl: "https://app.example/files" },
    scope: null,
    sweepIntervalMs: null,
    ...options,
  });
  const [near, far] = InMemoryTransport.createLinkedPair();
  await files.attach(new McpServer({ name: "files", version: "1.0.0" })).connect(far);
  const client = new McpClient({ name: "test", version: "1.0.0" });
  await client.connect(near);
  closers.push(
    () => files.close(),
    () => client.close(),
  );
  return {
    files,
    call: async (name, args) =>
      (await client.callTool({ name, arguments: { ...args } })).structuredContent as Record<string, unknown>,
  };
}

describe.each(found)("files on %s, by two instances", (_name, place, isFound) => {
  it.runIf(isFound)(
    "an upload goes on on whatever instance, by tool and by URL, and is published by either",
    async () => {
      closers.push(() => place.clear(place.url, key));
      const [one, other] = [await openInstance(place), await openInstance(place)];
      const bytes = randomBytes(40_000);
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const opened = await one.call("file_transfer_open", {
        direction: "upload",
        path: "a.bin",
        size: 40_000,
        sha256,
      });
      const { transferId } = opened;
      const chunk = (offset: number): object => ({
        transferId,
        offset,
        data: bytes.subarray(offset, offset + 10_000).toString("base64"),
      });
      expect(await other.call("file_transfer_write", chunk(0))).toMatchObject({ nextOffset: 10_000 });
      expect(await one.call("file_transfer_write", chunk(0))).toMatchObject({ nextOffset: 10_000 });
      expect(await one.call("file_transfer_write", chunk(10_000))).toMatchObject({ nextOffset: 20_000 });
      // A URL that one has signed counts on the other.
      const request = new Request(String(opened["uploadUrl"]), {
        method: "PATCH",
        headers: {
          "tus-resumable": "1.0.0",
          "upload-offset": "20000",
          "content-type": "application/offset+octet-stream",
        },
        body: bytes.subarray(20_000),
      });
      expect((await other.files.fetch(request)).status).toBe(204);
      expect(await one.call("file_transfer_commit", { transferId })).toMatchObject({
        status: "committed",
        sha256,
      });
      expect(await other.call("file_transfer_status", { transferId })).toMatchObject({ status: "committed" });
      expect((await readFile(join(dir, "box/a.bin"))).equals(bytes)).toBe(true);
    },
  );

  it.runIf(isFound)(
    "20 chunks at one offset at once: one is stored, the others are repeats or busy",
    async () => {
      closers.push(() => place.clear(place.url, key));
      const both = [await openInstance(place), await openInstance(place)];
      const { transferId } =
        (await both[0]?.call("file_transfer_open", { direction: "upload", path: "a" })) ?? {};
      const answers = await Promise.all(
        Array.from({ length: 20 }, async (_, index) =>
          both[index % 2]?.call("file_transfer_write", { transferId, offset: 0, data: "YWJjZA==" }),
        ),
      );
      expect(answers.filter((answer) => answer?.["nextOffset"] === 4).length).toBeGreaterThan(0);
      for (const answer of answers)
        if (answer?.["nextOffset"] !== 4) expect(answer).toMatchObject({ error: { code: "transfer_busy" } });
      expect(await both[1]?.call("file_transfer_status", { transferId })).toMatchObject({ offset: 4 });
    },
  );

  it.runIf(isFound)("both count together: of 20 openings at once 5 fit", async () => {
    closers.push(() => place.clear(place.url, key));
    const limits = { limits: { maxOpenTransfers: 5 } };
    const both = [await openInstance(place, limits), await openInstance(place, limits)];
    const answers = await Promise.all(
      Array.from({ length: 20 }, async (_, index) =>
        both[index % 2]?.call("file_transfer_open", { direction: "upload", path: `f${index}` }),
      ),
    );
    expect(answers.filter((answer) => answer?.["transferId"] !== undefined)).toHaveLength(5);
  });

  it.runIf(isFound)("what expires goes, whoever sweeps: bytes and record", async () => {
    closers.push(() => place.clear(place.url, key));
    const times = { idleMs: 1_000, leaseMs: 1_000 };
    const [one, other] = [await openInstance(place, times), await openInstance(place, times)];
    const { transferId } = await one.call("file_transfer_open", { direction: "upload", path: "a" });
    await one.call("file_transfer_write", { transferId, offset: 0, data: "YWJjZA==" });
    expect(await readdir(join(dir, "staging"))).not.toEqual([]);
    await other.files.sweep();
    expect(await readdir(join(dir, "staging"))).not.toEqual([]);
    await expect
      .poll(
        async () => {
          await other.files.sweep();
          return readdir(join(dir, "staging"));
        },
        { timeout: 40_000 },
      )
      .toEqual([]);
    expect(await one.call("file_transfer_status", { transferId })).toMatchObject({
      error: { code: "unknown_transfer" },
    });
  });
});
