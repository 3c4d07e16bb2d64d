// #region client
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const client = new Client(
  { name: "first-client", version: "1.0.0" },
  { capabilities: { elicitation: { form: {} } } },
);
client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
  console.log(params.message);
  return { action: "accept", content: { answer: "the team" } };
});
await client.connect(new StdioClientTransport({ command: "node", args: ["server-v1.ts"] }));
const call = client.experimental.tasks.callToolStream({ name: "publish" }, undefined, { task: {} });
for await (const message of call) {
  if (message.type === "taskCreated") console.log(message.task.status);
  if (message.type === "result") console.log(message.result.content);
}
await client.close();
// #endregion
