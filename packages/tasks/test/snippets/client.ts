// #region client
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const client = new Client({ name: "first-client", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: "node", args: ["server.ts"] }));
const result = await client.callTool(
  { name: "count", arguments: { to: 3 } },
  { onprogress: ({ message, progress, total }) => console.log(`${message} ${progress} of ${total}`) },
);
console.log(result.content);
await client.close();
// #endregion
