import type { RequestContext } from "@longjobs/core";
import { authorsError, jsonRpcError, rpcCode } from "./json-rpc-error.ts";

/**
 * Says whose task a call is about: a string that is the same for the same person and differs for others.
 * `null` says that everyone who can reach the server shares its tasks.
 */
export type ScopeOption = null | ((request: RequestContext) => string | Promise<string>);

/** The scope of one call; `undefined` where everyone shares. @throws a JSON-RPC error: never a shared bucket. */
export type ScopeResolver = (request: RequestContext) => Promise<string | undefined>;

/** Turns the option into a resolver. @throws TypeError */
export function resolveScopeOption(option: ScopeOption | undefined): ScopeResolver {
  if (option === null) return async () => undefined;
  if (option === undefined) return async (request) => scopeFromAuthInfo(request);
  if (typeof option !== "function") throw new TypeError("scope must be a function of the request, or null.");
  return async (request) => {
    const scope = await callScope(option, request);
    if (typeof scope === "string" && scope !== "") return scope;
    throw jsonRpcError(
      rpcCode.internalError,
      "The scope function of this server gave no text for this call.",
    );
  };
}

async function callScope(
  option: (request: RequestContext) => unknown,
  request: RequestContext,
): Promise<unknown> {
  try {
    return await option(request);
  } catch (error) {
    throw authorsError(error) as Error;
  }
}

/**
 * Client, issuer and subject together: the client id alone is shared by all users of one host, and a subject
 * means nothing without its issuer. Calls over stdio and in memory have one user.
 */
function scopeFromAuthInfo({ transport, authInfo }: RequestContext): string | undefined {
  if (transport !== "http") return undefined;
  const parts = [authInfo?.extra?.["iss"], authInfo?.extra?.["sub"], authInfo?.clientId];
  if (parts.every((part) => typeof part === "string" && part !== "")) return JSON.stringify(parts);
  throw jsonRpcError(
    rpcCode.internalError,
    "This server cannot tell whose task this is: the call has no auth info with clientId, extra.iss and extra.sub. " +
      "Set createTasks({ scope: (request) => … }), or scope: null if everyone may share all tasks.",
  );
}
