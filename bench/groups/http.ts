import { MemoryTaskStore } from "@longjobs/core";
import { createTasks } from "@longjobs/tasks";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { alternate } from "../measure.ts";
import { ratioOf, toFigures, type BenchGroup } from "../row.ts";

type Serve = (request: Request) => Promise<Response>;

/**
 * What a poll costs beside the least that the SDK does: a call of a tool that does nothing, on a server without tasks. No
 * socket is between: it would cost both the same, and hide the difference.
 */
export const http: BenchGroup = async function* ({ full, progress }) {
  const row = "requests of the native protocol, one at a time";
  progress(row);
  const tasks = createTasks({ store: new MemoryTaskStore(), scope: null });
  tasks.taskTool("wait", { inlineBudgetMs: 0 }, (_args, task) =>
    task.ask({ prompt: "Well?" }).then(() => ({ content: [] })),
  );
  tasks.taskTool("answer", { inlineBudgetMs: 0 }, () => ({ content: [{ type: "text", text: "Done." }] }));
  const bare = createMcpHandler(() => {
    const server = new McpServer({ name: "bare", version: "1.0.0" });
    server.registerTool("empty", {}, () => ({ content: [] }));
    return server;
  });
  const ours = createMcpHandler(() => tasks.attach(new McpServer({ name: "ours", version: "1.0.0" })));
  const [running, finished] = [await taskOf(ours.fetch, "wait"), await taskOf(ours.fetch, "answer")];
  const perSecond = (serve: Serve, method: string, params: CallParams) => async (): Promise<number> => {
    const requests = full ? 5_000 : 1_500;
    const startMs = performance.now();
    for (let sent = 0; sent < requests; sent += 1) await ask(serve, method, params);
    return (requests / (performance.now() - startMs)) * 1_000;
  };
  const contestants = new Map([
    ["an empty SDK tool call", perSecond(bare.fetch, "tools/call", { name: "empty", arguments: {} })],
    ["tasks/get, waiting", perSecond(ours.fetch, "tasks/get", { taskId: running })],
    ["tasks/get, finished", perSecond(ours.fetch, "tasks/get", { taskId: finished })],
  ]);
  // Once without counting: code is compiled.
  await alternate(contestants, 1);
  const figures = toFigures(await alternate(contestants, full ? 9 : 3));
  const bar = 1.3;
  yield {
    group: "http",
    row,
    unit: "requests/s",
    figures,
    ratios: ["tasks/get, waiting", "tasks/get, finished"].map((poll) =>
      ratioOf(figures, ["an empty SDK tool call", poll], "at most", bar),
    ),
  };
  await tasks.close({ drainMs: 0 });
};

interface CallParams {
  readonly name?: string;
  readonly taskId?: string;
  readonly arguments?: object;
}

async function taskOf(serve: Serve, name: string): Promise<string> {
  const { result } = await ask(serve, "tools/call", { name, arguments: {} });
  return result["taskId"] as string;
}

async function ask(
  serve: Serve,
  method: string,
  params: CallParams,
): Promise<{ readonly result: { readonly [member: string]: unknown } }> {
  const response = await serve(
    new Request("http://127.0.0.1/mcp", {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": params.name ?? params.taskId ?? "",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method,
        params: {
          ...params,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1.0.0" },
            "io.modelcontextprotocol/clientCapabilities": {
              elicitation: { form: {} },
              extensions: { "io.modelcontextprotocol/tasks": {} },
            },
          },
        },
      }),
    }),
  );
  const body = await response.text();
  const json = body.startsWith("{") ? body : /^data: (\{.*"id":.*)$/m.exec(body)?.[1];
  return JSON.parse(json ?? "{}") as { readonly result: { readonly [member: string]: unknown } };
}
