/** A call as `scope`, `prepare` and handlers see it: the same on every SDK and transport. */
export interface RequestContext {
  readonly transport: "http" | "stdio" | "memory";
  /** What the SDK's verifier made of the caller's token. Never hand the token on. */
  readonly authInfo?: AuthInfo;
  /** Lower-case names. */
  readonly headers?: { readonly [name: string]: string };
  readonly sessionId?: string;
  /** The `_meta` of the request, the protocol's own entries aside. */
  readonly meta: { readonly [key: string]: unknown };
}

/** The caller's identity as the SDKs hand it over. */
export interface AuthInfo {
  readonly token?: string;
  readonly clientId?: string;
  readonly scopes?: readonly string[];
  readonly expiresAt?: number;
  readonly resource?: unknown;
  /** Whatever the verifier added; issuer and subject are here as `iss` and `sub`, or nowhere. */
  readonly extra?: { readonly [key: string]: unknown };
}

/** The parts of an SDK v2 handler context that are read here. */
interface V2Context {
  readonly sessionId?: string | undefined;
  readonly mcpReq: { readonly _meta?: { readonly [key: string]: unknown } | undefined };
  readonly http?:
    | {
        readonly authInfo?: AuthInfo | undefined;
        readonly req?: { readonly headers?: Iterable<[string, string]> } | undefined;
      }
    | undefined;
}

/** The parts of an SDK v1 handler `extra` that are read here. */
interface V1Context {
  readonly sessionId?: string | undefined;
  readonly _meta?: { readonly [key: string]: unknown } | undefined;
  readonly authInfo?: AuthInfo | undefined;
  readonly requestInfo?:
    | { readonly headers?: { readonly [name: string]: string | readonly string[] | undefined } }
    | undefined;
}

/**
 * Reads the handler context of either SDK. The only place that knows their shapes.
 *
 * @param local - What a call without HTTP came over; the contexts themselves do not tell.
 */
export function readRequestContext(context: unknown, local: "stdio" | "memory" = "stdio"): RequestContext {
  return isV2(context) ? readV2(context, local) : readV1(context ?? {}, local);
}

function readV2({ http, mcpReq, sessionId }: V2Context, local: "stdio" | "memory"): RequestContext {
  const headers = http?.req?.headers;
  return {
    transport: http?.req === undefined ? local : "http",
    meta: mcpReq._meta ?? {},
    ...(http?.authInfo === undefined ? {} : { authInfo: http.authInfo }),
    ...(headers === undefined ? {} : { headers: Object.fromEntries(headers) }),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
}

function readV1(
  { authInfo, requestInfo, sessionId, _meta }: V1Context,
  local: "stdio" | "memory",
): RequestContext {
  return {
    transport: requestInfo === undefined ? local : "http",
    meta: _meta ?? {},
    ...(authInfo === undefined ? {} : { authInfo }),
    ...(requestInfo?.headers === undefined ? {} : { headers: joined(requestInfo.headers) }),
    ...(sessionId === undefined ? {} : { sessionId }),
  };
}

function joined(headers: {
  readonly [name: string]: string | readonly string[] | undefined;
}): Record<string, string> {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined
      ? []
      : [[name.toLowerCase(), typeof value === "string" ? value : value.join(", ")] as const],
  );
  return Object.fromEntries(entries);
}

function isV2(context: unknown): context is V2Context {
  return typeof context === "object" && context !== null && "mcpReq" in context;
}
