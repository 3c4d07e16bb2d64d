import { createServer } from "node:http";
import type { Tasks } from "@longjobs/tasks";
import { toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";

/** Serves tasks over HTTP on `PORT`, and tells a parent process the port. */
export function serve(tasks: Tasks): void {
  const handler = createMcpHandler(() =>
    tasks.attach(new McpServer({ name: "worker-fleet", version: "1.0.0" })),
  );
  const serveMcp = toNodeHandler(handler);
  const server = createServer(
    (request, response) => void serveMcp(request as Parameters<typeof serveMcp>[0], response),
  );
  server.listen(Number(process.env["PORT"] ?? 0), "127.0.0.1", () => {
    const address = server.address();
    process.send?.({ port: typeof address === "object" ? address?.port : undefined });
  });
  process.once("SIGTERM", () => {
    server.close();
    server.closeAllConnections();
  });
}

/** Ends tasks in good order when the process is told to, and then what they stand on. */
export function closeOnSigterm(tasks: Tasks, close: () => Promise<void>): void {
  const stop = async (): Promise<void> => {
    await tasks.close();
    await close();
    process.disconnect?.();
  };
  process.once("SIGTERM", () => void stop());
}
