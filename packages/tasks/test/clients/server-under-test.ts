import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { MemoryTaskStore } from "@longjobs/core";
import { createTasks, type Tasks } from "@longjobs/tasks";
import { StreamableHTTPClientTransport as HttpV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InMemoryTransport as MemoryV1 } from "@modelcontextprotocol/sdk/inMemory.js";
import type { Transport as TransportV1 } from "@modelcontextprotocol/sdk/shared/transport.js";
import { InMemoryTransport as MemoryV2 } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

import { newServerV1, newServerV2, registerTools, serveHttpV1, serveHttpV2, type Sdk } from "./one-server.ts";

/** What a client reaches the server over. */
export type Road = "stdio" | "HTTP" | "HTTP, sessions" | "HTTP, no sessions" | "in memory";

/** The transports of SDK v2, whose types name no interface for all of them. */
export type TransportV2 = StdioV2 | HttpV2 | MemoryV2;

/** The one server, ready to be reached over one road by clients of either SDK. */
export class ServerUnderTest {
  readonly sdk: Sdk;
  readonly road: Road;
  readonly #tasks: Tasks;
  #url: Promise<string> | undefined;
  #dir: Promise<string> | undefined;
  readonly #closers: (() => unknown)[] = [];

  constructor(sdk: Sdk, road: Road) {
    this.sdk = sdk;
    this.road = road;
    this.#tasks = createTasks({ store: new MemoryTaskStore(), scope: null, pollIntervalMs: 20 });
    registerTools(this.#tasks);
  }

  /** Where it listens. */
  url(): Promise<string> {
    this.#url ??= this.#listen();
    return this.#url;
  }

  /** Resolves when a task is made, or changes. */
  nextTask(): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#tasks.lifecycle.onTaskChanged(() => {
        stop();
        resolve();
      });
    });
  }

  /** The way of a client of SDK v1. */
  async toV1(): Promise<TransportV1> {
    if (this.road === "stdio") return new StdioV1(await this.#command());
    if (this.road !== "in memory") return new HttpV1(new URL(await this.url()));
    const [near, far] = MemoryV1.createLinkedPair();
    await this.#serveInMemory(far);
    return near;
  }

  /** The way of a client of SDK v2. */
  async toV2(): Promise<TransportV2> {
    if (this.road === "stdio") return new StdioV2(await this.#command());
    if (this.road !== "in memory") return new HttpV2(new URL(await this.url()));
    const [near, far] = MemoryV2.createLinkedPair();
    await this.#serveInMemory(far);
    return near;
  }

  async close(): Promise<void> {
    for (const close of this.#closers) await close();
    await this.#tasks.close({ shutdownGraceMs: 0 });
    if (this.#dir !== undefined) await rm(await this.#dir, { recursive: true });
  }

  async #listen(): Promise<string> {
    const sessions = this.road === "HTTP, sessions";
    const listening =
      this.sdk === "v1" ? await serveHttpV1(this.#tasks, { sessions }) : await serveHttpV2(this.#tasks);
    this.#closers.push(listening.close);
    return listening.url;
  }

  /** A process of its own for each session; the tasks of the one before are in the folder. */
  async #command(): Promise<{ command: string; args: string[]; stderr: "inherit" }> {
    this.#dir ??= mkdtemp(join(tmpdir(), "longjobs-clients-"));
    const file = fileURLToPath(new URL("one-server.ts", import.meta.url));
    return { command: process.execPath, args: [file, this.sdk, await this.#dir], stderr: "inherit" };
  }

  async #serveInMemory(far: MemoryV1 | MemoryV2): Promise<void> {
    if (this.sdk === "v1") return newServerV1(this.#tasks).connect(far);
    // As over stdio, so that both revisions are served.
    const serving = serveStdio(() => newServerV2(this.#tasks), { transport: far });
    this.#closers.push(() => serving.close());
  }
}
