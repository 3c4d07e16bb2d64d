import { describe, expect, test } from "vitest";

import { readRequestContext } from "../src/index.ts";

const authInfo = {
  token: "t",
  clientId: "host",
  scopes: ["a"],
  extra: { iss: "https://issuer", sub: "ann" },
};

describe("a handler context of SDK v2", () => {
  test("over HTTP", () => {
    const headers = new Headers({ "X-Tenant": "7", Accept: "text/html" });
    const context = {
      sessionId: "s-1",
      mcpReq: { _meta: { "example.com/trace": "1" } },
      http: { authInfo, req: { headers } },
    };
    expect(readRequestContext(context)).toStrictEqual({
      transport: "http",
      authInfo,
      headers: { accept: "text/html", "x-tenant": "7" },
      sessionId: "s-1",
      meta: { "example.com/trace": "1" },
    });
  });

  test("over stdio or in memory: what is absent stays absent", () => {
    expect(readRequestContext({ mcpReq: {} })).toStrictEqual({ transport: "stdio", meta: {} });
    expect(readRequestContext({ mcpReq: {}, http: undefined }, "memory")).toStrictEqual({
      transport: "memory",
      meta: {},
    });
    expect(readRequestContext({ mcpReq: {}, http: { authInfo } })).toStrictEqual({
      transport: "stdio",
      authInfo,
      meta: {},
    });
  });
});

describe("a handler extra of SDK v1", () => {
  test("over HTTP, with headers in Node's form", () => {
    const extra = {
      sessionId: "s-1",
      _meta: { progressToken: 1 },
      authInfo,
      requestInfo: { headers: { "X-Tenant": "7", "x-many": ["a", "b"], "x-none": undefined } },
    };
    expect(readRequestContext(extra)).toStrictEqual({
      transport: "http",
      authInfo,
      headers: { "x-tenant": "7", "x-many": "a, b" },
      sessionId: "s-1",
      meta: { progressToken: 1 },
    });
  });

  test("over stdio, or nothing at all", () => {
    expect(readRequestContext({})).toStrictEqual({ transport: "stdio", meta: {} });
    expect(readRequestContext(undefined, "memory")).toStrictEqual({ transport: "memory", meta: {} });
    expect(readRequestContext(null)).toStrictEqual({ transport: "stdio", meta: {} });
  });
});
