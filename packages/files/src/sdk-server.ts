/*
 * The two TypeScript SDKs, as far as they are used here: an `McpServer` of either takes a tool by the same call. Neither is
 * imported, only met by shape.
 */
import { readRequestContext, type RequestContext } from "@longjobs/core";
import type { McpServerLike } from "./mcp-server.ts";
import type { TransferTool } from "./tools/transfer-tool.ts";

/** Serves `resources/read` for names of one form. */
export interface ResourceReader {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** As RFC 6570 writes it. */
  readonly uriTemplate: string;
  isNamed(uri: string): boolean;
  read(uri: string, request: RequestContext): Promise<unknown>;
}

interface KnownServer {
  readonly server: { readonly transport?: { readonly constructor: { readonly name: string } } };
  registerTool(
    name: string,
    config: object,
    callback: (args: unknown, context: unknown) => Promise<unknown>,
  ): unknown;
  registerResource?(
    name: string,
    template: object,
    config: object,
    callback: (uri: URL, variables: unknown, context: unknown) => Promise<unknown>,
  ): unknown;
}

const attached = new WeakSet<object>();

/**
 * Registers the tools on a server, and what it reads for `resources/read`.
 *
 * @throws Error for what is no server, for one that is attached already, and for a name that is taken.
 */
export function attachTools(
  given: McpServerLike,
  tools: readonly TransferTool[],
  resources: ResourceReader | undefined,
): void {
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
  if (resources !== undefined) attachResources(server, resources);
}

/** The SDKs ask a template for no more than this, so that none of their classes is needed. */
function attachResources(server: KnownServer, { name, title, description, ...reader }: ResourceReader): void {
  const template = {
    listCallback: undefined,
    completeCallback: () => undefined,
    uriTemplate: {
      variableNames: ["transferId"],
      toString: () => reader.uriTemplate,
      match: (uri: string) => (reader.isNamed(uri) ? {} : null),
    },
  };
  server.registerResource?.(name, template, { title, description }, (uri, _variables, context) =>
    reader.read(uri.href, requestOf(server, context)),
  );
}

function requestOf({ server }: KnownServer, context: unknown): RequestContext {
  const isMemory = server.transport?.constructor.name === "InMemoryTransport";
  return readRequestContext(context, isMemory ? "memory" : "stdio");
}
