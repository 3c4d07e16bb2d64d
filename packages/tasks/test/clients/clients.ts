import { Client as ClientV2 } from "@modelcontextprotocol/client";
import type { RawClientDispatch } from "@modelcontextprotocol/ext-tasks/client";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { by2025Tasks, type Connection } from "./by-2025-tasks.ts";
import { byExtTasks, clientInfo, dispatchOver, dispatchTo, extCapabilities } from "./by-ext-tasks.ts";
import { byTools, type ToolCaller, type ToolReply } from "./by-tools.ts";
import { inspectorByTasks, inspectorCaller } from "./inspector.ts";
import type { OpenClient, ScenarioClient } from "./scenario.ts";
import type { ServerUnderTest, TransportV2 } from "./server-under-test.ts";

/** How each client is opened to a server. */
export const clients = {
  "SDK v1 Client": (server) => async (answer) => byTools(callerV1(await connectV1(server)), answer),
  "SDK v1 Client, experimental.tasks": (server) => (answer) => openWith2025Tasks(server, answer),
  "SDK v2 Client, 2025-11-25": (server) => async (answer) =>
    byTools(callerV2(await connectV2(server, "legacy")), answer),
  "SDK v2 Client, 2026-07-28": (server) => async (answer) =>
    byTools(callerV2(await connectV2(server, "auto")), answer),
  "ext-tasks, 2025-11-25": (server) => (answer) => openExtTasks(server, answer, "legacy"),
  "ext-tasks, 2026-07-28": (server) => (answer) => openExtTasks(server, answer, "auto"),
  "Inspector CLI, 2025-11-25": (server) => async (answer) =>
    byTools(inspectorCaller(await server.url(), "legacy"), answer),
  "Inspector CLI, 2026-07-28": (server) => async () =>
    inspectorByTasks(await server.url(), () => server.nextTask()),
} as const satisfies { readonly [name: string]: (server: ServerUnderTest) => OpenClient };

export type ClientName = keyof typeof clients;

async function connectV1(server: ServerUnderTest, client = new ClientV1(clientInfo)): Promise<ClientV1> {
  await client.connect(await server.toV1());
  return client;
}

function callerV1(client: ClientV1): ToolCaller {
  return {
    showsProgress: true,
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    readResource: async (uri) => textIn(await client.readResource({ uri })),
    callTool: async (name, args, onprogress) => {
      const options = onprogress === undefined ? {} : { onprogress };
      return (await client.callTool({ name, arguments: { ...args } }, undefined, options)) as ToolReply;
    },
    close: () => client.close(),
  };
}

async function openWith2025Tasks(
  server: ServerUnderTest,
  answer: (question: string) => string,
): Promise<ScenarioClient> {
  const client = new ClientV1(clientInfo, { capabilities: { elicitation: { form: {} } } });
  const connection: Connection = { asked: [], answer, showsProgress: isLasting(server) };
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    connection.asked.push("the client");
    return { action: "accept", content: { answer: answer(params.message) } };
  });
  await connectV1(server, client);
  return by2025Tasks(byTools(callerV1(client), answer), client, connection);
}

/** True where a connection outlives the requests on it. */
function isLasting({ sdk, road }: ServerUnderTest): boolean {
  return road !== "HTTP, no sessions" && !(road === "HTTP" && sdk === "v2");
}

async function connectV2(server: ServerUnderTest, mode: "legacy" | "auto"): Promise<ClientV2> {
  const client = new ClientV2(clientInfo, { versionNegotiation: { mode } });
  await client.connect(await server.toV2());
  return client;
}

function callerV2(client: ClientV2): ToolCaller {
  return {
    showsProgress: true,
    listTools: async () => (await client.listTools()).tools.map(({ name }) => name),
    readResource: async (uri) => textIn(await client.readResource({ uri })),
    callTool: (name, args, onprogress) =>
      client.callTool({ name, arguments: { ...args } }, onprogress === undefined ? {} : { onprogress }),
    close: () => client.close(),
  };
}

async function openExtTasks(
  server: ServerUnderTest,
  answer: (question: string) => string,
  mode: "legacy" | "auto",
): Promise<ScenarioClient> {
  const capabilities = mode === "legacy" ? {} : extCapabilities;
  const client = new ClientV2(clientInfo, { capabilities, versionNegotiation: { mode } });
  const transport = await server.toV2();
  const dispatch = mode === "legacy" ? undefined : await dispatchBeside(server, transport);
  await client.connect(transport);
  return byExtTasks(byTools(callerV2(client), answer), client, answer, dispatch);
}

async function dispatchBeside(server: ServerUnderTest, transport: TransportV2): Promise<RawClientDispatch> {
  return server.road === "HTTP" ? dispatchTo(await server.url()) : dispatchOver(transport);
}

function textIn({ contents }: { readonly contents: readonly object[] }): string {
  const [first] = contents as readonly { readonly text?: string }[];
  return first?.text ?? "";
}
