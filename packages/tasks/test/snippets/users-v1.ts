import type { TaskStore } from "@longjobs/core";
// #region users
import type { IncomingMessage, ServerResponse } from "node:http";

import { createTasks, type Tasks } from "@longjobs/tasks";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import type { OAuthTokenVerifier } from "@modelcontextprotocol/sdk/server/auth/provider.js";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

type ParsedRequest = IncomingMessage & { readonly body?: unknown };

export function serveUsersV1(store: TaskStore, verifier: OAuthTokenVerifier) {
  const tasks: Tasks = createTasks({ store });
  const app = createMcpExpressApp();
  const serve = async (request: ParsedRequest, response: ServerResponse): Promise<void> => {
    const transport = new StreamableHTTPServerTransport();
    await tasks.attach(new McpServer({ name: "reports", version: "1.0.0" })).connect(transport);
    await transport.handleRequest(request, response, request.body);
  };
  app.use(requireBearerAuth({ verifier }));
  app.all("/mcp", (request: ParsedRequest, response: ServerResponse, tell: (fault: unknown) => void) => {
    serve(request, response).catch(tell);
  });
  return { tasks, app };
}
// #endregion
