import type { JsonValue } from "@longjobs/core";

import type { CheckContext } from "../check-context.ts";
import { defineCheck, type Check } from "../check.ts";
import { minimalRecord, nested, patched } from "../records.ts";

/** The JSON values of C7, by the kind of store that loses them. */
export const jsonValues: Readonly<Record<"strings" | "numbers" | "keys" | "empties" | "nesting", JsonValue>> =
  {
    strings: [
      "",
      " ",
      "\u0000",
      "a\u0000b",
      "\uD800",
      "\uDFFF tail",
      "😀",
      "e\u0301",
      "\u2028\u2029",
      '"\\/\b\f\n\r\t',
      "\uFEFF",
      "null",
    ],
    numbers: [
      0, -1, 0.1, 1.5, 1e21, 5e-324, 1.797_693_134_862_315_7e308, 9_007_199_254_740_991,
      -9_007_199_254_740_991, 4_294_967_296,
    ],
    keys: JSON.parse(
      '{"__proto__":{"polluted":true},"constructor":1,"toString":2,"":3,"10":4,"2":5,"a.b":6,"$set":7,"nul\\u0000":8,"\\ud800":9,"toJSON":10}',
    ) as JsonValue,
    empties: [null, {}, [], [[]], [{}], { none: null, object: {}, list: [] }, false, true],
    nesting: nested(200),
  };

/** Every JSON value comes back as it went in, by either way in. */
export const valueChecks: readonly Check[] = [
  valueCheck(
    "values.strings",
    "strings with NUL, lone surrogates, line separators and escapes come back as they were",
  ),
  valueCheck("values.numbers", "numbers large, tiny, fractional and beyond 32 bits come back as they were"),
  valueCheck(
    "values.keys",
    "object keys such as __proto__, the empty string, 10 and a.b come back as they were",
  ),
  valueCheck("values.empties", "null, booleans, empty objects and empty arrays come back as they were"),
  valueCheck("values.nesting", "a value nested 200 levels deep comes back as it was"),
];

function valueCheck(id: `values.${keyof typeof jsonValues}`, title: string): Check {
  const value = jsonValues[id.slice("values.".length) as keyof typeof jsonValues];
  return defineCheck({ id, rule: "C7", title, run: (ctx) => roundTrips(ctx, value) });
}

async function roundTrips(ctx: CheckContext, value: JsonValue): Promise<void> {
  const record = minimalRecord({ data: value });
  await ctx.store.create(record);
  await ctx.expectStored(record, "The record after create()");
  const patch = { checkpoint: { value, asked: {} }, result: { structuredContent: value } };
  await ctx.store.update("task-1", patch, record.version);
  await ctx.expectStored(patched(record, patch), "The record after update()");
}
