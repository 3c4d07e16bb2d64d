import type { TaskStore } from "@longjobs/core";
import type { Tasks } from "@longjobs/tasks";
import { z } from "zod";

/** Whatever sends invoices; it takes a key by which it knows a repeat. */
export interface Post {
  send(invoice: string, options: { readonly key: string }): Promise<string>;
  find(key: string): Promise<string | undefined>;
}

export function registerResumableTools(
  tasks: Tasks,
  read: (page: number) => Promise<string>,
  post: Post,
): void {
  // #region crawl
  const inputSchema = z.object({ pages: z.number() });
  tasks.taskTool("crawl", { inputSchema, onInterrupted: "resume" }, async ({ pages }, task) => {
    const { page: done, words: counted } = (task.checkpoint ?? { page: 0, words: 0 }) as Cursor;
    let words = counted;
    for (let page = done + 1; page <= pages; page += 1) {
      words += (await read(page)).split(" ").length;
      await task.saveCheckpoint({ page, words });
    }
    return { content: [{ type: "text", text: `${pages} pages, ${words} words.` }] };
  });
  // #endregion

  // #region effect
  tasks.taskTool("send_invoice", { onInterrupted: "resume" }, async (_args, task) => {
    const key = `invoice-${task.taskId}`;
    // The intent comes first: whoever goes on after a crash knows that the effect may have happened.
    const intended = task.checkpoint === "intended";
    if (!intended) await task.saveCheckpoint("intended");
    const sent = intended ? await post.find(key) : undefined;
    const number = sent ?? (await post.send("Invoice for May", { key }));
    return { content: [{ type: "text", text: `Sent as ${number}.` }] };
  });
  // #endregion

  // #region deadline
  tasks.taskTool(
    "render",
    { onInterrupted: "resume", maxAttempts: 2, maxRunMs: 600_000 },
    async (_args, task) => {
      for (let frame = 0; frame < 100; frame += 1) {
        task.signal.throwIfAborted();
        await task.progress({ done: frame, total: 100 });
      }
      return { content: [{ type: "text", text: "Rendered." }] };
    },
  );
  // #endregion
}

type Cursor = { readonly page: number; readonly words: number };

// #region shutdown
export function closeOnSigterm(tasks: Tasks, store: TaskStore): void {
  process.once("SIGTERM", () => void close());

  async function close(): Promise<void> {
    await tasks.close({ drainMs: 10_000 });
    await store.close();
  }
}
// #endregion
