import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { exercise } from "./support/exercise.ts";
import { withOwnServers } from "./support/find-redis.ts";
import { startRedisCluster } from "./support/redis-cluster.ts";
import { testClient, testServer, testStore } from "./support/store-fixture.ts";

const run = promisify(execFile);

async function output(name: string, url: string): Promise<string> {
  const script = join(import.meta.dirname, "snippets", `${name}.ts`);
  const { stdout } = await run(process.execPath, [script], { env: { ...process.env, REDIS_URL: url } });
  return stdout.trim();
}

/** The blocks of a language in the guide. */
async function blocksOf(language: string): Promise<string[]> {
  const guide = join(import.meta.dirname, "../../../docs/guide/redis.md");
  const page = await readFile(guide, "utf8");
  const blocks = page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)\`\`\``, "gm"));
  return Array.from(blocks, ([, block = ""]) => block);
}

// They use the prefix that users have: on servers of their own, where nobody else does.
withOwnServers("what the pages show runs, and ends by itself", () => {
  it.each([
    ["first-store", "completed"],
    ["client", "0"],
  ])("%s.ts prints %s", async (name, printed) => {
    expect(await output(name, (await testServer()).url)).toBe(printed);
  });

  it("cluster.ts", async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    expect(await output("cluster", cluster.nodes[0]?.url ?? "")).toBe("0");
  });

  it("wait-for-replicas.ts: with a replica calls resolve, without one they reject", async () => {
    const primary = await testServer();
    expect(await output("wait-for-replicas", primary.url)).toBe("store_unavailable");
    await testServer(["--replicaof", "127.0.0.1", String(primary.port)]);
    const client = testClient(primary.url);
    while ((await client.wait(1, 1_000)) < 1) await client.set("written", "once more");
    expect(await output("wait-for-replicas", primary.url)).toBe("there");
  });

  it("the user of the guide may do everything that the store does, and nothing with other keys", async () => {
    const server = await testServer();
    const admin = testClient(server.url);
    const [rule = ""] = await blocksOf("acl");
    const [command = "", ...args] = rule.replaceAll("\\\n", " ").trim().split(/\s+/);
    await admin.call(command, ...args);
    const errors: unknown[] = [];
    const client = testClient(server.url.replace("//", "//mcp_server:secret@"));
    const { store } = testStore(server.url, {
      client,
      keyPrefix: "longjobs",
      onError: (error) => errors.push(error),
    });
    await exercise(store);
    const hints = { count: 0 };
    await store.watch("terminal", () => void (hints.count += 1));
    expect(errors).toEqual([]);
    await expect(client.get("another")).rejects.toThrow("NOPERM");
    const other = testStore(server.url, { client, keyPrefix: "another" }).store;
    await expect(other.get("task")).rejects.toMatchObject({ code: "store_unavailable", retryable: false });
  });

  it("the commands for the operator", async () => {
    const server = await testServer();
    await output("first-store", server.url);
    const [script = ""] = await blocksOf("sh");
    const { stdout } = await run("sh", ["-c", script.replaceAll("redis-cli", `redis-cli -p ${server.port}`)]);
    expect(stdout).toContain("longjobs:format");
  });
});
