/** What one call says about its client. */
export interface CallOptions {
  /** Declares the Tasks extension on this very request. @default true */
  readonly declare?: boolean;
  /** Other client capabilities. @default elicitation by form */
  readonly capabilities?: { readonly [name: string]: unknown };
  /** Further entries of `_meta`, such as a progress token. */
  readonly meta?: { readonly [key: string]: unknown };
}

/** Stands for 20,000 levels of nesting, which `JSON.stringify` cannot write. */
export const deepValue = "<20,000 levels>";

/** The JSON text of a frame. */
export function frameText(frame: object): string {
  return JSON.stringify(frame).replaceAll(`"${deepValue}"`, `${"[".repeat(20_000)}${"]".repeat(20_000)}`);
}

let lastId = 0;

/** A request of revision 2026-07-28. */
export function modernFrame(method: string, params: object = {}, options: CallOptions = {}) {
  const { declare = true, capabilities = { elicitation: { form: {} } }, meta = {} } = options;
  const extensions = declare ? { extensions: { "io.modelcontextprotocol/tasks": {} } } : {};
  return {
    jsonrpc: "2.0" as const,
    id: (lastId += 1),
    method,
    params: {
      ...params,
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
        "io.modelcontextprotocol/clientCapabilities": { ...capabilities, ...extensions },
        ...meta,
      },
    },
  };
}

/** A request of revision 2025-11-25. */
export function legacyFrame(method: string, params: object = {}) {
  return { jsonrpc: "2.0" as const, id: (lastId += 1), method, params };
}
