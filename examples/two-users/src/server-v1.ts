/* Behind `requireBearerAuth` of SDK v1, which is Express middleware. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Tasks } from "@longjobs/tasks";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { whoHas } from "./people.ts";

type ParsedRequest = IncomingMessage & { readonly body?: unknown };

export function createServerV1(tasks: Tasks): Server {
  const app = createMcpExpressApp();
  const verifyAccessToken = async (token: string) => {
    const authInfo = whoHas(token);
    if (authInfo === undefined) throw new InvalidTokenError("Unknown token");
    return authInfo;
  };
  const serve = async (request: ParsedRequest, response: ServerResponse): Promise<void> => {
    const transport = new StreamableHTTPServerTransport();
    await tasks.attach(new McpServer({ name: "reports", version: "1.0.0" })).connect(transport);
    await transport.handleRequest(request, response, request.body);
  };
  app.use(requireBearerAuth({ verifier: { verifyAccessToken } }));
  app.all("/mcp", (request: ParsedRequest, response: ServerResponse, tell: (fault: unknown) => void) => {
    serve(request, response).catch(tell);
  });
  return createServer(app);
}
