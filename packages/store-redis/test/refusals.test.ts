import { inspect } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { RedisTaskStore } from "../src/index.ts";
import { quietClient } from "./support/clients.ts";
import { record } from "./support/records.ts";
import { stubServer, type Reply } from "./support/stub-server.ts";

/** A store on a server that answers every script of the test's call like this. */
async function storeAnswered(reply: Reply) {
  const server = await stubServer((name, args) => {
    if (name === "evalsha" && args[2]?.endsWith(":format")) return "$1\r\n1\r\n";
    return reply(name, args);
  });
  const client = quietClient(server.port);
  onTestFinished(() => client.disconnect());
  return { store: new RedisTaskStore({ client, commandTimeoutMs: 300 }), server };
}

function answering(error: string): Reply {
  return (name) => (name === "evalsha" || name === "eval" ? `-${error}\r\n` : undefined);
}

const refusals = [
  ["LOADING Redis is loading the dataset in memory", "store_unavailable", true],
  ["READONLY You can't write against a read only replica.", "store_unavailable", true],
  [
    "READONLY You can't write against a read only replica. script: 1a2b, on @user_script:3.",
    "store_unavailable",
    true,
  ],
  [
    "ERR Error running script (call to f_1a2b): @user_script:3: @user_script: 3: -READONLY You can't write against a read only replica.",
    "store_unavailable",
    true,
  ],
  ["TRYAGAIN Multiple keys request during rehashing of slot", "store_unavailable", true],
  ["CLUSTERDOWN Hash slot not served", "store_unavailable", true],
  ["MASTERDOWN Link with MASTER is down", "store_unavailable", true],
  ["BUSY Redis is busy running a script.", "store_unavailable", true],
  ["NOREPLICAS Not enough good replicas to write.", "store_unavailable", true],
  ["MISCONF Redis is configured to save RDB snapshots", "store_unavailable", true],
  ["MOVED 3999 127.0.0.1:6381", "store_unavailable", false],
  ["ASK 3999 127.0.0.1:6381", "store_unavailable", false],
  ["CROSSSLOT Keys in request don't hash to the same slot", "store_unavailable", false],
  ["NOAUTH Authentication required.", "store_unavailable", false],
  ["NOPERM this user has no permissions", "store_unavailable", false],
  ["WRONGTYPE Operation against a key holding the wrong kind of value", "store_unavailable", false],
  ["OOM command not allowed when used memory > 'maxmemory'.", "no_space", true],
  ["ERR something that nobody foresaw", "store_unavailable", true],
] as const;

it.each(refusals)("P46: %s: every call rejects with %s", async (said, code, retryable) => {
  const { store } = await storeAnswered(answering(said));
  const outcomes = await Promise.allSettled([
    store.create(record("task")),
    store.get("task"),
    store.update("task", { statusMessage: "patched" }, 1),
    store.sweep(),
    store.claim("claimer", 1_000, { limit: 1 }),
    store.renew([{ taskId: "task", token: "token" }], 1_000),
  ]);
  for (const outcome of outcomes) {
    expect(outcome).toMatchObject({ status: "rejected", reason: { code, retryable } });
  }
});

it("P46: a server that accepts and never answers: every call rejects in time, and says that it is unknown what happened", async () => {
  const { store } = await storeAnswered((name) => (name === "evalsha" ? "" : undefined));
  const calls = [store.create(record("task")), store.get("task"), store.sweep()];
  for (const outcome of await Promise.allSettled(calls)) {
    expect(outcome).toMatchObject({
      status: "rejected",
      reason: { code: "store_unavailable", retryable: true },
    });
  }
});

it("no error carries what was written: payloads belong in no log", async () => {
  const { store } = await storeAnswered(answering("ERR refused"));
  const failure: unknown = await store
    .create(record("task", { data: "a secret of the caller's" }))
    .catch((error: unknown) => error);
  expect(inspect(failure, { depth: 10 })).not.toContain("secret");
});

it("a script that the server does not know is sent whole, once, and answers", async () => {
  const { store, server } = await storeAnswered((name) => {
    if (name === "evalsha") return "-NOSCRIPT No matching script.\r\n";
    return name === "eval" ? "*1\r\n:1\r\n" : undefined;
  });
  await store.create(record("task"));
  expect(server.commands.filter((name) => name.startsWith("eval"))).toEqual(["evalsha", "evalsha", "eval"]);
});

it("a reply that is no record is record_corrupt", async () => {
  for (const reply of ["*2\r\n$6\r\nstatus\r\n$4\r\nnot!\r\n", '*2\r\n$4\r\nkind\r\n$3\r\n"x"\r\n']) {
    const { store } = await storeAnswered((name) => (name === "evalsha" ? reply : undefined));
    await expect(store.get("task")).rejects.toMatchObject({ code: "record_corrupt" });
  }
});

it("an answer that no script gives is no success", async () => {
  for (const reply of ["*1\r\n:9\r\n", "*0\r\n", "*1\r\n$2\r\nOK\r\n"]) {
    const { store } = await storeAnswered((name) => (name === "evalsha" ? reply : undefined));
    await expect(store.create(record("task"))).rejects.toMatchObject({ code: "store_unavailable" });
    await expect(store.update("task", { statusMessage: "x" }, 1)).rejects.toMatchObject({
      code: "store_unavailable",
    });
  }
});
