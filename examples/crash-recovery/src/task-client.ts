import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  createApplicationInputHandler,
  createTaskSessionFromClient,
  type RawClientDispatch,
} from "@modelcontextprotocol/ext-tasks/client";

const clientInfo = { name: "longjobs-demo-client", version: "1.0.0" };
const capabilities = { elicitation: { form: {} }, extensions: { "io.modelcontextprotocol/tasks": {} } };
const protocolVersion = "2026-07-28";

/**
 * A task session of the official client. `answer` is asked when the server asks; a session that is dropped
 * without being closed is what a crashed client leaves behind.
 */
export async function openSession(url: string, answer: (message: string) => object) {
  const client = new Client(clientInfo, { capabilities, versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return createTaskSessionFromClient(client, {
    endpointId: "longjobs-demo",
    rawDispatch: dispatchOverHttp(url),
    v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities: capabilities },
    onInputRequest: createApplicationInputHandler({
      elicitation: async (request) => answer(messageOf(request.params)) as never,
      sampling: async () => {
        throw new Error("The demo has no model.");
      },
      roots: async () => ({ roots: [] }),
    }),
  });
}

/** One POST per request, as the Streamable HTTP transport of revision 2026-07-28 has it. */
function dispatchOverHttp(url: string): RawClientDispatch {
  let id = 0;
  return async (request, options) => {
    const { method, params } = request as { method: string; params?: { name?: string; taskId?: string } };
    const headers = new Headers({
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-method": method,
      "mcp-protocol-version": protocolVersion,
    });
    const name = params?.name ?? params?.taskId;
    if (name !== undefined) headers.set("mcp-name", name);
    const body = JSON.stringify({ jsonrpc: "2.0", id: (id += 1), method, params });
    const response = await fetch(url, { method: "POST", headers, body, signal: options?.signal ?? null });
    const message = readMessage(await response.text());
    return message.error === undefined
      ? ({ kind: "result", result: message.result } as never)
      : ({ kind: "error", error: message.error } as never);
  };
}

/** The answer, as plain JSON or as the last event of a stream. */
function readMessage(text: string): { result?: unknown; error?: unknown } {
  const events = text.startsWith("{")
    ? [text]
    : text.split("\n").flatMap((line) => /^data:(.*)/.exec(line)?.[1] ?? []);
  const messages = events.map((event) => JSON.parse(event) as { result?: unknown; error?: unknown });
  const answer = messages.find((message) => "result" in message || "error" in message);
  if (answer === undefined) throw new Error("The server sent no answer.");
  return answer;
}

function messageOf({ message }: { readonly message?: unknown }): string {
  return typeof message === "string" ? message : "";
}
