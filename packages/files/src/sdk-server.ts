/*
 * The two TypeScript SDKs, as far as they are used here: an `McpServer` of either takes a tool by the same call. Neither is
 * imported, only met by shape.
 */
import { readRequestContext, type RequestContext } from "@longjobs/core";
import type { McpServerLike } from "./mcp-server.ts";
import type { TransferTool } from "./tools/transfer-tool.ts";

interface KnownServer {
  readonly server: { readonly transport?: { readonly constructor: { readonly name: string } } };
  registerTool(
    name: string,
    config: object,
    callback: (args: unknown, context: unknown) => Promise<unknown>,
  ): unknown;
}

const attached = new WeakSet<object>();

/**
 * Registers the tools on a server.
 *
 * @throws Error for what is no server, for one that is attached already, and for a name that is taken.
 */
export function attachTools(given: McpServerLike, tools: readonly TransferTool[]): void {
  const mcp = given as Partial<KnownServer> | null | undefined;
  if (typeof mcp?.registerTool !== "function" || typeof mcp.server !== "object")
    throw new TypeError(
      "longjobs attaches file transfer to an McpServer of @modelcontextprotocol/server or @modelcontextprotocol/sdk. " +
        "Pass the server itself, before it is wrapped.",
    );
  const server = mcp as KnownServer;
  if (attached.has(server)) throw new Error("File transfer is attached to this server already.");
  attached.add(server);
  for (const tool of tools)
    server.registerTool(tool.name, tool.config, (args, context) =>
      tool.serve(args, requestOf(server, context)),
    );
}

function requestOf({ server }: KnownServer, context: unknown): RequestContext {
  const isMemory = server.transport?.constructor.name === "InMemoryTransport";
  return readRequestContext(context, isMemory ? "memory" : "stdio");
}
