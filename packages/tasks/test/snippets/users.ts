import type { TaskStore } from "@longjobs/core";
// #region users
import { createTasks, type Tasks } from "@longjobs/tasks";
import {
  createMcpHandler,
  McpServer,
  OAuthError,
  OAuthErrorCode,
  requireBearerAuth,
} from "@modelcontextprotocol/server";
import type { OAuthTokenVerifier } from "@modelcontextprotocol/server";

export function serveUsers(store: TaskStore, verifier: OAuthTokenVerifier) {
  const tasks: Tasks = createTasks({ store });
  const handler = createMcpHandler(() => tasks.attach(new McpServer({ name: "reports", version: "1.0.0" })));
  const gate = requireBearerAuth({ verifier });
  const fetch = async (request: Request): Promise<Response> => {
    const authInfo = await gate(request);
    if (authInfo instanceof Response) return authInfo;
    return handler.fetch(request, { authInfo });
  };
  return { tasks, fetch, close: () => handler.close() };
}
// #endregion

// #region verifier
/** Stands for your identity provider: it must say who issued the token, and for whom. */
export function localVerifier(users: { readonly [token: string]: string }): OAuthTokenVerifier {
  return {
    verifyAccessToken: async (token) => {
      const sub = users[token];
      if (sub === undefined) throw new OAuthError(OAuthErrorCode.InvalidToken, "Unknown token");
      return {
        token,
        clientId: "the-host",
        scopes: [],
        expiresAt: Math.floor(Date.now() / 1_000) + 3_600,
        extra: { iss: "https://id.example", sub },
      };
    },
  };
}
// #endregion

// #region scope
export function createTeamTasks(store: TaskStore): Tasks {
  return createTasks({
    store,
    scope: ({ authInfo }) => {
      const team = authInfo?.extra?.["team"];
      if (typeof team !== "string") throw Object.assign(new Error("You are in no team."), { code: -32_001 });
      return team;
    },
  });
}
// #endregion
