import type { RequestContext } from "./request-context.ts";

/**
 * Says whose task, or whose transfer, a call is about: a string that is the same for the same person and differs for others.
 * `null` says that everyone who can reach the server shares them.
 */
export type ScopeOption = null | ((request: RequestContext) => string | Promise<string>);

/** The scope of one call; `undefined` where everyone shares. Rejects rather than name a shared bucket. */
export type ScopeResolver = (request: RequestContext) => Promise<string | undefined>;

/** How a package words what {@link scopeResolver} refuses. */
export interface ScopeRefusals {
  /** The function that takes the option, such as `"createTasks"`. */
  readonly factory: string;
  /** What the option divides, such as `"tasks"`. */
  readonly things: string;
  /** The error for a call that cannot be attributed; its message says what the server's author has to do. */
  readonly refuse: (message: string) => Error;
  /** The error for what the author's own function threw. */
  readonly failed: (thrown: unknown) => unknown;
}

/** Turns the option into a resolver. @throws TypeError */
export function scopeResolver(option: ScopeOption | undefined, refusals: ScopeRefusals): ScopeResolver {
  if (option === null) return async () => undefined;
  if (option === undefined) return async (request) => scopeFromAuthInfo(request, refusals);
  if (typeof option !== "function") throw new TypeError("scope must be a function of the request, or null.");
  return async (request) => {
    const scope = await callScope(option, request, refusals);
    if (typeof scope === "string" && scope !== "") return scope;
    throw refusals.refuse("The scope function of this server gave no text for this call.");
  };
}

async function callScope(
  option: (request: RequestContext) => unknown,
  request: RequestContext,
  { failed }: ScopeRefusals,
): Promise<unknown> {
  try {
    return await option(request);
  } catch (error) {
    throw failed(error) as Error;
  }
}

/**
 * Client, issuer and subject together: the client id alone is shared by all users of one host, and a subject
 * means nothing without its issuer. Calls over stdio and in memory have one user.
 */
function scopeFromAuthInfo(
  { transport, authInfo }: RequestContext,
  { factory, things, refuse }: ScopeRefusals,
): string | undefined {
  if (transport !== "http") return undefined;
  const parts = [authInfo?.extra?.["iss"], authInfo?.extra?.["sub"], authInfo?.clientId];
  if (parts.every((part) => typeof part === "string" && part !== "")) return JSON.stringify(parts);
  throw refuse(
    `This server cannot tell whose ${things} these are: the call has no auth info with clientId, extra.iss and extra.sub. ` +
      `Set ${factory}({ scope: (request) => … }), or scope: null if everyone may share all ${things}.`,
  );
}
