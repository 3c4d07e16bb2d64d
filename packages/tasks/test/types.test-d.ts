/* Compiled, never run: what must be inferred, and what must not compile. */
import type { JsonValue, MemoryTaskStore } from "@longjobs/core";
import { McpServer, type McpHttpHandler } from "@modelcontextprotocol/server";
import { serveStdio, type StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { expectTypeOf } from "vitest";
import { z } from "zod";

import { withTasks, type Tasks, type ToolTask } from "../src/index.ts";

export function inferred(tasks: Tasks): void {
  tasks.taskTool(
    "object",
    { inputSchema: z.object({ n: z.number(), s: z.string().optional() }) },
    (args, task) => {
      expectTypeOf(args).toEqualTypeOf<{ n: number; s?: string | undefined }>();
      expectTypeOf(task).toEqualTypeOf<ToolTask>();
      expectTypeOf(task.scope).toEqualTypeOf<string | undefined>();
      expectTypeOf(task.checkpoint).toEqualTypeOf<JsonValue | undefined>();
      return { content: [{ type: "text", text: `${args.n}` }] };
    },
  );

  tasks.taskTool("shape", { inputSchema: { n: z.number(), when: z.string().transform(Number) } }, (args) => {
    expectTypeOf(args).toEqualTypeOf<{ n: number; when: number }>();
    return { content: [] };
  });

  tasks.taskTool("none", {}, (args) => {
    expectTypeOf(args).toEqualTypeOf<Record<string, never>>();
    return { content: [] };
  });

  tasks.taskTool(
    "prepared",
    {
      inputSchema: z.object({ n: z.number() }),
      prepare: (args, { inputResponses, scope, transport }) => {
        expectTypeOf(args).toEqualTypeOf<{ n: number }>();
        expectTypeOf(scope).toEqualTypeOf<string | undefined>();
        expectTypeOf(transport).toEqualTypeOf<"http" | "stdio" | "memory">();
        return inputResponses["sure"] === undefined ? {} : { arguments: { n: 1 } };
      },
    },
    async (args, task) => {
      const answers = await task.requestInput({ a: { method: "roots/list" }, b: { method: "roots/list" } });
      expectTypeOf<keyof typeof answers>().toEqualTypeOf<"a" | "b">();
      return { content: [{ type: "text", text: `${args.n}` }] };
    },
  );

  // Asking or going on, in one expression.
  const ask = { inputRequests: { sure: { method: "roots/list" } } };
  tasks.taskTool("ask", { prepare: (_args, { scope }) => (scope === undefined ? ask : {}) }, () => ({}));
  tasks.taskTool(
    "ask",
    { prepare: (_args, { scope }) => (scope === undefined ? ask : undefined) },
    () => ({}),
  );

  // A handler may end its task itself.
  tasks.taskTool("own", {}, (_args, task) => task.complete({ content: [] }));
}

export function mustNotCompile(tasks: Tasks, mcp: McpServer, store: MemoryTaskStore): void {
  withTasks(mcp, { store });
  expectTypeOf(tasks.attach(mcp)).toEqualTypeOf<McpServer>();
  // @ts-expect-error -- a store is required
  withTasks(mcp, {});
  // @ts-expect-error -- not a server
  withTasks({}, { store });
  // @ts-expect-error -- a scope is a function or null: a constant would be one bucket for everyone
  withTasks(mcp, { store, scope: "everyone" });
  // @ts-expect-error -- how answers are checked is not for users to replace
  withTasks(mcp, { store, validateAnswer: () => undefined });

  // @ts-expect-error -- a handler is required
  tasks.taskTool("missing", {});
  // @ts-expect-error -- text is no result
  tasks.taskTool("text", {}, () => "done");
  // @ts-expect-error -- content is a list
  tasks.taskTool("content", {}, () => ({ content: "done" }));
  // @ts-expect-error -- there is no such support
  tasks.taskTool("support", { taskSupport: "always" }, () => ({ content: [] }));
  // @ts-expect-error -- a plain JSON Schema has no types to infer from
  tasks.taskTool("json", { inputSchema: { type: "object" } }, () => ({ content: [] }));
  // @ts-expect-error -- no such argument
  tasks.taskTool("argument", { inputSchema: z.object({ n: z.number() }) }, ({ m }) => ({ content: [m] }));
  const inputSchema = z.object({ n: z.number() });
  // @ts-expect-error -- prepare must give arguments of the tool's own type
  tasks.taskTool("prepare", { inputSchema, prepare: () => ({ arguments: { n: "1" } }) }, () => ({}));
  tasks.taskTool("handle", {}, async (_args, task) => {
    // @ts-expect-error -- a signal is not the handler's to replace
    task.signal = new AbortController().signal;
    // @ts-expect-error -- progress counts are numbers
    await task.progress({ done: "half" });
  });
}

/** What is wrapped keeps its type, and is what the SDK takes. */
export function wrapped(tasks: Tasks, handler: McpHttpHandler, transport: StdioServerTransport): void {
  expectTypeOf(tasks.wrapHandler(handler)).toEqualTypeOf<McpHttpHandler>();
  expectTypeOf(tasks.wrapTransport(transport)).toEqualTypeOf<StdioServerTransport>();
  serveStdio(() => new McpServer({ name: "n", version: "1" }), { transport: tasks.wrapTransport(transport) });
  // @ts-expect-error -- a transport is no handler
  tasks.wrapHandler(transport);
  // @ts-expect-error -- a handler is no transport
  tasks.wrapTransport(handler);
}
