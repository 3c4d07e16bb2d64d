/** What a request was answered with. */
export interface Answer<Result = { readonly [member: string]: unknown }> {
  readonly result?: Result;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: { readonly [member: string]: unknown };
  };
}

/** One request of a client of revision 2026-07-28 that can be asked, and that knows tasks. */
export interface Request {
  readonly method: string;
  readonly params: { readonly [member: string]: unknown };
  /** What stands in `_meta` beside what the client says of itself. */
  readonly meta?: { readonly [member: string]: unknown };
  readonly signal?: AbortSignal;
}

let requests = 0;

/** `undefined` when nobody answered: whether the request was carried out is not known then. */
export async function sendRequest<Result = { readonly [member: string]: unknown }>(
  url: string,
  { method, params, meta, signal }: Request,
): Promise<Answer<Result> | undefined> {
  requests += 1;
  const said = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "patient-client", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": {
      elicitation: { form: {} },
      extensions: { "io.modelcontextprotocol/tasks": {} },
    },
  };
  try {
    const response = await fetch(url, {
      method: "POST",
      signal: signal ?? null,
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": String(params["name"] ?? params["taskId"]),
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: requests,
        method,
        params: { ...params, _meta: { ...said, ...meta } },
      }),
    });
    const body = await response.text();
    const json = body.startsWith("{") ? body : /^data: (\{.*"id":.*)$/m.exec(body)?.[1];
    return json === undefined ? undefined : (JSON.parse(json) as Answer<Result>);
  } catch {
    // Refused, cut off or given up: the instance may be gone.
    return undefined;
  }
}
