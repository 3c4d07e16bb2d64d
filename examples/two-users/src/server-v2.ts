/* Behind `requireBearerAuth` of SDK v2. */
import { createServer, type Server } from "node:http";
import type { Tasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  McpServer,
  OAuthError,
  OAuthErrorCode,
  requireBearerAuth,
} from "@modelcontextprotocol/server";
import { whoHas } from "./people.ts";

export function createServerV2(tasks: Tasks): Server {
  const handler = createMcpHandler(() => tasks.attach(new McpServer({ name: "reports", version: "1.0.0" })));
  const gate = requireBearerAuth({
    verifier: {
      verifyAccessToken: async (token) => {
        const authInfo = whoHas(token);
        if (authInfo === undefined) throw new OAuthError(OAuthErrorCode.InvalidToken, "Unknown token");
        return authInfo;
      },
    },
  });
  const guarded = {
    fetch: async (request: Request): Promise<Response> => {
      const authInfo = await gate(request);
      return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
    },
  };
  const serve = toNodeHandler(guarded);
  return createServer((request, response) => void serve(request, response));
}
