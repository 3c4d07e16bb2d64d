import { randomUUID } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RedisTaskStore } from "../src/index.ts";
import type { LuaScript } from "../src/lua-script.ts";
import { exercise, exerciseLooks, strangeIds } from "./support/exercise.ts";
import { findRedis, withRedis } from "./support/find-redis.ts";
import { crc16, keySlot } from "./support/key-slot.ts";
import { recordingClient, type ScriptCall } from "./support/recording-client.ts";
import { keysUnder } from "./support/store-fixture.ts";
import { waitUntil } from "./support/wait-until.ts";

const folder = join(import.meta.dirname, "../src/lua");
const scripts = await Promise.all(
  readdirSync(folder).map(async (file) => {
    const [script] = Object.values((await import(join(folder, file))) as Record<string, LuaScript>);
    if (script === undefined) throw new Error(`${file} exports no script.`);
    return { name: file.replace(".ts", ""), source: script.source, sha1: script.sha1 };
  }),
);

const found = await findRedis();
afterAll(() => found?.stop());

describe.each(scripts)("$name", ({ name, source }) => {
  const { header, body } = parted(source);

  it("has a header with its name, what it returns and what it touches", () => {
    expect(header[0]).toMatch(new RegExp(`^-- ${name}: .+\\.$`));
    expect(header.some((line) => line.startsWith("-- Returns: "))).toBe(true);
    expect(header.at(-1)).toMatch(/^-- Atomic: .*Touches: KEYS only\./);
    expect(source.split("\n").length).toBeLessThanOrEqual(100);
  });

  it("reads no key and no argument that its header does not name", () => {
    for (const kind of ["KEYS", "ARGV"] as const) {
      const { count, open } = named(header, kind);
      for (const [, index] of body.matchAll(new RegExp(`${kind}\\[(\\d+)`, "g"))) {
        expect(Number(index) <= count || open, `${kind}[${index}]`).toBe(true);
      }
    }
  });
});

withRedis("scripts and their call sites", found, (url) => {
  let { calls, commands }: Recorded = { calls: [], commands: [] };

  beforeAll(async () => {
    ({ calls, commands } = await exerciseRecorded(url));
  });

  it("every script is called, with as many keys and arguments as its header says", () => {
    for (const { name, sha1, source } of scripts) {
      const sent = calls.filter((call) => call.sha1 === sha1);
      expect(sent.length, name).toBeGreaterThan(0);
      for (const { keys, values } of sent) {
        const forms = formsOf(parted(source).header);
        const fits = forms.some(
          (form) => fitsIn(form.keys, keys.length) && fitsIn(form.values, values.length),
        );
        expect(fits, `${name} with ${keys.length} keys and ${values.length} arguments`).toBe(true);
      }
    }
  });

  it("P44: the keys of every call are in one slot, whatever the id and the tool", () => {
    expect(crc16("123456789")).toBe(0x31c3);
    expect(calls.length).toBeGreaterThan(10 * strangeIds.length);
    for (const { keys } of calls) expect(new Set(keys.map(keySlot)).size, keys.join()).toBe(1);
  });

  it("P44: no script touches a key that it was not given", () => {
    expect(commands.length).toBeGreaterThan(calls.length);
    for (const { given, args } of commands) {
      const [command = "", key = ""] = args;
      if (command === "TIME") continue;
      expect(given.has(key), args.join(" ")).toBe(true);
    }
  });

  it("P49: a change is told with less than 200 bytes, whatever the task holds", () => {
    const told = commands.filter(({ args }) => args[0] === "PUBLISH");
    expect(told.length).toBeGreaterThan(strangeIds.length);
    for (const { args } of told) expect(args[2]?.length).toBeLessThan(20);
  });
});

interface Arity {
  readonly count: number;
  readonly open: boolean;
}

function parted(source: string): { readonly header: readonly string[]; readonly body: string } {
  const lines = source.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("--"));
  return { header: lines.slice(0, end), body: lines.slice(end).join("\n") };
}

/** How many the header names, and whether more may follow. */
function named(header: readonly string[], kind: "KEYS" | "ARGV"): Arity {
  const declared = header.slice(1).filter((line) => !/^-- (Returns|Atomic|facts)/.test(line));
  const indexes = [...declared.join("\n").matchAll(new RegExp(`${kind}\\[(\\d+)(\\.\\.)?\\] `, "g"))];
  const open = indexes.some(([, , more]) => more !== undefined);
  const count = Math.max(
    0,
    ...indexes.map(([, index, more]) => Number(index) - (more === undefined ? 0 : 1)),
  );
  return { count, open };
}

/** A header may name a second form of the call, after a line that begins with "With". */
function formsOf(header: readonly string[]): { readonly keys: Arity; readonly values: Arity }[] {
  const second = header.findIndex((line) => line.startsWith("-- With "));
  const headers = second < 0 ? [header] : [header.slice(0, second), header];
  return headers.map((lines) => ({ keys: named(lines, "KEYS"), values: named(lines, "ARGV") }));
}

function fitsIn({ count, open }: Arity, given: number): boolean {
  return open ? given >= count : given === count;
}

interface Recorded {
  /** What the store sent. */
  readonly calls: readonly ScriptCall[];
  /** What the server says its scripts did, each command with the keys that its script was given. */
  readonly commands: readonly { readonly given: ReadonlySet<string>; readonly args: readonly string[] }[];
}

async function exerciseRecorded(url: string): Promise<Recorded> {
  const keyPrefix = `test-${randomUUID()}`;
  const plain = new Redis(url);
  const monitor = await plain.monitor();
  const commands: { given: ReadonlySet<string>; args: readonly string[] }[] = [];
  let given: ReadonlySet<string> = new Set();
  let ended = false;
  monitor.on("monitor", (_time: string, args: string[], source: string) => {
    if (args[1] === keyPrefix) ended = true;
    else if (source === "lua") commands.push({ given, args });
    else given = new Set(args.slice(3, 3 + Number(args[2])));
  });
  const { client, calls } = recordingClient(plain);
  // Notifications are not heard: the store looks by itself.
  client.duplicate = () => plain.duplicate({ lazyConnect: true, port: 1, retryStrategy: () => null });
  const store = new RedisTaskStore({ client, keyPrefix, watchPollMs: 5, onError: () => undefined });
  await exercise(store);
  await exerciseLooks(store);
  await store.close();
  await plain.echo(keyPrefix);
  await waitUntil(() => ended, "the monitor has seen everything");
  monitor.disconnect();
  for (const key of await keysUnder(plain, keyPrefix)) await plain.del(key);
  plain.disconnect();
  // Others use the same server.
  const ours = commands.filter((command) => [...command.given].some((key) => key.startsWith(keyPrefix)));
  return { calls, commands: ours };
}
