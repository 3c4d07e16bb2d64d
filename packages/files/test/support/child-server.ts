import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

/** What a tool answered: its structure, or the envelope of its refusal. */
export type ToolAnswer = { readonly [name: string]: unknown; readonly error?: { readonly code: string } };

let id = 0;

/** A server in a process of its own. */
export class ChildServer {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly url: string;

  private constructor(child: ChildProcess, ended: Promise<unknown>, port: number) {
    this.#child = child;
    this.#ended = ended;
    this.url = `http://127.0.0.1:${port}`;
  }

  /** Starts it, and resolves when it takes requests. */
  static async start(dir: string): Promise<ChildServer> {
    const child = fork(join(import.meta.dirname, "../kill/child.ts"), {
      env: { ...process.env, FILES_DIR: dir },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    const ended = once(child, "exit");
    const [said] = (await Promise.race([
      once(child, "message"),
      ended.then(([code]) => {
        throw new Error(`The server ended with ${String(code)} before it listened.`);
      }),
    ])) as [{ port: number }];
    return new ChildServer(child, ended, said.port);
  }

  /** True from the moment on when it was to be killed. */
  wasKilled = false;

  /** SIGKILL; resolves when the process is gone. */
  async kill(): Promise<void> {
    this.wasKilled = true;
    this.#child.kill("SIGKILL");
    await this.#ended;
  }

  /** Calls a tool. Rejects when the server dies meanwhile. */
  async call(name: string, args: object): Promise<ToolAnswer> {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const response = await fetch(`${this.url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: (id += 1),
        method: "tools/call",
        params: { name, arguments: args, _meta },
      }),
    });
    const text = await response.text();
    const line = text.startsWith("{") ? text : (/^data:(.*)$/m.exec(text)?.[1] ?? "");
    const message = JSON.parse(line) as {
      readonly result?: { readonly structuredContent?: ToolAnswer };
      readonly error?: unknown;
    };
    if (message.result?.structuredContent === undefined) throw new Error(`Not a tool result: ${text}`);
    return message.result.structuredContent;
  }
}
