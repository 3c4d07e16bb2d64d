import { describe, expect, test } from "vitest";

import { expectGenerated, toTable } from "../support/generated-page.ts";
import { clients, type ClientName } from "./clients.ts";
import type { Sdk } from "./one-server.ts";
import { runScenario, type Features } from "./scenario.ts";
import { ServerUnderTest, type Road } from "./server-under-test.ts";

/** What reaches what. Left out is what cannot be: the extension of 2026 needs SDK v2, and the Inspector HTTP. */
const rows: readonly (readonly [client: ClientName, sdk: Sdk, roads: readonly Road[]])[] = [
  ["SDK v1 Client", "v1", ["stdio", "HTTP, sessions", "HTTP, no sessions", "in memory"]],
  ["SDK v1 Client", "v2", ["stdio", "HTTP", "in memory"]],
  ["SDK v1 Client, experimental.tasks", "v1", ["stdio", "HTTP, sessions", "HTTP, no sessions", "in memory"]],
  ["SDK v1 Client, experimental.tasks", "v2", ["stdio", "HTTP", "in memory"]],
  ["SDK v2 Client, 2025-11-25", "v1", ["stdio", "HTTP, sessions", "HTTP, no sessions", "in memory"]],
  ["SDK v2 Client, 2025-11-25", "v2", ["stdio", "HTTP", "in memory"]],
  ["SDK v2 Client, 2026-07-28", "v2", ["stdio", "HTTP", "in memory"]],
  ["ext-tasks, 2025-11-25", "v1", ["stdio", "HTTP, sessions"]],
  ["ext-tasks, 2025-11-25", "v2", ["stdio"]],
  ["ext-tasks, 2026-07-28", "v2", ["stdio", "HTTP"]],
  ["Inspector CLI, 2025-11-25", "v1", ["HTTP, sessions"]],
  ["Inspector CLI, 2026-07-28", "v2", ["HTTP"]],
];

const cases = rows.flatMap(([client, sdk, roads]) => roads.map((road) => ({ client, sdk, road })));
const results = new Map<(typeof cases)[number], Features>();

describe.concurrent("one server file serves every client", () => {
  test.for(cases)("$client to SDK $sdk over $road", { timeout: 180_000 }, async (one) => {
    const server = new ServerUnderTest(one.sdk, one.road);
    try {
      results.set(one, await runScenario(clients[one.client](server)));
    } finally {
      await server.close();
    }
  });
});

test("the page on clients has what they found", async () => {
  const head = [
    "client",
    "server",
    "over",
    "long work",
    "progress",
    "questions",
    "cancel",
    "a later session",
  ];
  const grouped = new Map<string, { readonly cells: readonly string[]; readonly roads: Road[] }>();
  for (const one of cases) {
    const { long, progress, question, cancel, later } = results.get(one) ?? expect.fail("A case is missing.");
    const cells = [long, progress, question, cancel, later];
    const key = JSON.stringify([one.client, one.sdk, cells]);
    const group = grouped.get(key) ?? { cells: [one.client, `SDK ${one.sdk}`, ...cells], roads: [] };
    group.roads.push(one.road);
    grouped.set(key, group);
  }
  const table = [...grouped.values()].map(({ cells, roads }) => cells.toSpliced(2, 0, roads.join("; ")));
  await expectGenerated("reference/clients.md", "clients", toTable(head, table));
});
