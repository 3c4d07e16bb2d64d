import { scopeResolver } from "@longjobs/core";
import type { ScopeOption as SharedScopeOption, ScopeResolver as SharedScopeResolver } from "@longjobs/core";
import { authorsError, jsonRpcError, rpcCode } from "./json-rpc-error.ts";

/**
 * Says whose task a call is about: a string that is the same for the same person and differs for others.
 * `null` says that everyone who can reach the server shares its tasks.
 */
export type ScopeOption = SharedScopeOption;

/** The scope of one call; `undefined` where everyone shares. @throws a JSON-RPC error: never a shared bucket. */
export type ScopeResolver = SharedScopeResolver;

/** Turns the option into a resolver. @throws TypeError */
export function resolveScopeOption(option: ScopeOption | undefined): ScopeResolver {
  return scopeResolver(option, {
    factory: "createTasks",
    things: "tasks",
    refuse: (message) => jsonRpcError(rpcCode.internalError, message),
    failed: authorsError,
  });
}
