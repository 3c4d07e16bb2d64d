import type { InputRequest, InputResponse } from "../../src/index.ts";

/** A form that asks for nothing in particular. */
export function question(message = "Go on?"): InputRequest {
  return {
    method: "elicitation/create",
    params: { mode: "form", message, requestedSchema: { type: "object", properties: {} } },
  };
}

/** A person who agrees. */
export function accepted(content: { readonly [key: string]: string | number | boolean } = {}): InputResponse {
  return { action: "accept", content };
}

/** A judge for tests: `accept` needs `ok: true`; decline and cancel need nothing. */
export function needsOk(_request: InputRequest, response: InputResponse): string | undefined {
  if (response["action"] !== "accept") return undefined;
  const { content } = response as { content?: { ok?: unknown } };
  return content?.ok === true ? undefined : "ok must be true";
}
