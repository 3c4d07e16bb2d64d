import type { Tasks } from "@longjobs/tasks";
import type { CallToolResult, Client } from "@modelcontextprotocol/client";
import { z } from "zod";

export function registerOrderTool(tasks: Tasks, order: (book: string, key: string) => Promise<number>): void {
  // #region server
  tasks.taskTool(
    "order_book",
    { inputSchema: z.object({ book: z.string() }), idempotencyArgument: "idempotencyKey" },
    async ({ book }, task) => {
      const number = await order(book, task.taskId);
      return { content: [{ type: "text", text: `Order ${number}: ${book}.` }] };
    },
  );
  // #endregion
}

// #region client
/** Calls until there is an answer: with one key for all the calls, the work is done once. */
export async function orderBook(client: Client, book: string): Promise<CallToolResult> {
  const _meta = { "longjobs/idempotencyKey": crypto.randomUUID() };
  for (let calls = 1; ; calls += 1) {
    try {
      return await client.callTool({ name: "order_book", arguments: { book }, _meta }, { timeout: 10_000 });
    } catch (error) {
      if (calls === 5) throw error;
    }
  }
}
// #endregion
