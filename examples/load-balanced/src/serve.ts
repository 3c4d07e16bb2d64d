import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { ErrorListener, TaskStore } from "@longjobs/core";
import { createTasks, type Tasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { registerTools } from "./tools.ts";

/** What an instance is told. */
export interface ServeOptions {
  readonly store: TaskStore;
  /** @default "127.0.0.1" */
  readonly host?: string | undefined;
  /** 0 for any that is free. */
  readonly port: number;
  /** How long the work of an instance that died stays with it, in milliseconds. */
  readonly leaseMs: number;
  /** How long running work may go on when the instance closes, in milliseconds. @default 10_000 */
  readonly drainMs?: number;
  /** @default the tools of this example */
  readonly register?: (tasks: Tasks) => void;
  readonly onError?: ErrorListener;
}

/** An instance that serves. */
export interface Instance {
  readonly port: number;
  /** Lets running work finish for a while, and gives the rest to the other instances. */
  close(): Promise<void>;
}

/** Serves tasks over HTTP. The store decides who its neighbours are. */
export async function serveTasks(options: ServeOptions): Promise<Instance> {
  const { store, host = "127.0.0.1", port, leaseMs, onError } = options;
  const { drainMs = 10_000, register = registerTools } = options;
  const tasks = createTasks({
    store,
    // One user: everyone who can reach this server shares its tasks.
    scope: null,
    leaseMs,
    pollIntervalMs: 200,
    ...(onError === undefined ? {} : { onError }),
  });
  register(tasks);
  const handler = createMcpHandler(() =>
    tasks.attach(new McpServer({ name: "load-balanced", version: "1.0.0" })),
  );
  const serveMcp = toNodeHandler(handler);
  const server = createServer((request, response) => void serveMcp(request, response));
  await new Promise<void>((resolve) => {
    server.listen(port, host, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      // #region close
      // No new connections; clients of open ones are answered while running work may finish.
      server.close();
      await tasks.close({ drainMs });
      server.closeAllConnections();
      // #endregion
    },
  };
}
