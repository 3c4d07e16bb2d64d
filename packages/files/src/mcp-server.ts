/** An `McpServer` of `@modelcontextprotocol/server` or of `@modelcontextprotocol/sdk`. */
export interface McpServerLike {
  readonly server: object;
  registerTool(...args: never[]): unknown;
}
