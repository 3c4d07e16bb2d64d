import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPackedFolder, removePackedFolder } from "./support/packed-folder.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..");
const packages = ["core", "tasks", "files", "store-wal", "store-redis", "store-postgres", "conformance"];
let folder = "";

beforeAll(async () => {
  const catalog = await readFile(join(root, "pnpm-workspace.yaml"), "utf8");
  const others = ["@modelcontextprotocol/server", "@modelcontextprotocol/client", "zod"].map((name) => {
    const version = new RegExp(`^ +"?${name}"?: (.+)$`, "m").exec(catalog)?.[1];
    return `${name}@${version}`;
  });
  folder = await createPackedFolder(packages, others);
});

afterAll(() => removePackedFolder(folder));

describe("the packed packages in an empty folder", () => {
  it("are imported by name and run a task to its end", async () => {
    await writeFile(
      join(folder, "task.mjs"),
      `import { TaskLifecycle } from "@longjobs/core";
       import { WalTaskStore } from "@longjobs/store-wal";
       await using store = await WalTaskStore.open({ dir: "./one-task" });
       await using lifecycle = new TaskLifecycle({ store });
       const { taskId } = await lifecycle.createTask();
       await lifecycle.handle(taskId).complete({ content: [{ type: "text", text: "done" }] });
       console.log(JSON.stringify((await lifecycle.getTask(taskId)).result));`,
    );
    const { stdout } = await run(process.execPath, ["task.mjs"], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual({ content: [{ type: "text", text: "done" }] });
  });

  it("have declarations that stand on their own", async () => {
    await mkdir(join(folder, "types"));
    await writeFile(
      join(folder, "types", "all.ts"),
      packages.map((name, index) => `export * as p${index} from "@longjobs/${name}";`).join("\n"),
    );
    const compilerOptions = {
      strict: true,
      skipLibCheck: false,
      module: "NodeNext",
      target: "ES2023",
      lib: ["ES2023", "ESNext.Disposable", "DOM"],
      types: [],
      noEmit: true,
    };
    await writeFile(
      join(folder, "types", "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["all.ts"] }),
    );
    await run("tsc", ["-p", join(folder, "types", "tsconfig.json")]);
  });

  it("run the server of the README, which goes on with a task after a SIGKILL", async () => {
    const readme = await readFile(join(root, "README.md"), "utf8");
    const server = /```ts\n([^]*?)```/.exec(readme)?.[1] ?? "";
    expect(server.split("\n").filter((line) => line.trim() !== "").length).toBeLessThanOrEqual(15);
    await writeFile(join(folder, "server.ts"), server);

    const first = new StdioServer(folder);
    const { taskId, resultType } = (await first.request("tools/call", {
      name: "count",
      arguments: { to: 1 },
    })) as Answer;
    expect(resultType).toBe("task");
    expect(await first.poll(taskId, ({ status }) => status !== "working")).toMatchObject({
      status: "completed",
      result: { content: [{ type: "text", text: "Counted to 1." }] },
    });
    const second = (await first.request("tools/call", { name: "count", arguments: { to: 3 } })) as Answer;
    await first.kill();

    const next = new StdioServer(folder);
    expect(await next.request("tasks/get", { taskId })).toMatchObject({ status: "completed", taskId });
    expect(await next.poll(second.taskId, ({ status }) => status !== "working")).toMatchObject({
      status: "completed",
      result: { content: [{ type: "text", text: "Counted to 3." }] },
    });
    await next.kill();
  });
});

interface Answer {
  readonly resultType: string;
  readonly taskId: string;
  readonly status: string;
}

/** The README's server as a host starts it: a child process that speaks JSON lines on its standard streams. */
class StdioServer {
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, (message: { result?: unknown; error?: unknown }) => void>();
  #id = 0;

  constructor(cwd: string) {
    const child = spawn(process.execPath, ["server.ts"], { cwd, stdio: ["pipe", "pipe", "inherit"] });
    createInterface({ input: child.stdout }).on("line", (line) => {
      const message = JSON.parse(line) as { id?: number; result?: unknown; error?: unknown };
      if (message.id !== undefined) this.#waiting.get(message.id)?.(message);
    });
    this.#child = child;
  }

  async request(method: string, params: object): Promise<unknown> {
    const id = (this.#id += 1);
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
    };
    const answered = new Promise<{ result?: unknown; error?: unknown }>((resolve) =>
      this.#waiting.set(id, resolve),
    );
    this.#child.stdin?.write(
      `${JSON.stringify({ jsonrpc: "2.0", id, method, params: { ...params, _meta } })}\n`,
    );
    const { result, error } = await answered;
    if (error !== undefined) throw new Error(JSON.stringify(error));
    return result;
  }

  async poll(taskId: string, done: (task: Answer) => boolean): Promise<Answer> {
    const deadlineMs = Date.now() + 20_000;
    for (;;) {
      const task = (await this.request("tasks/get", { taskId })) as Answer;
      if (done(task)) return task;
      if (Date.now() > deadlineMs) throw new Error(`Task ${taskId} is still ${task.status}.`);
    }
  }

  async kill(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#child.once("exit", () => resolve()));
    this.#child.kill("SIGKILL");
    await ended;
  }
}
