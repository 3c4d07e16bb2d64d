import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { segmentsIn } from "./support/churn.ts";
import { overwrite } from "./support/log-bytes.ts";
import { openStore } from "./support/open-store.ts";
import { record } from "./support/records.ts";
import { quickTempDir } from "./support/temp-dir.ts";

const HOLE_BYTES = 4_096;

test("a hole of 4 KiB in the header of a file spares one of its copies: every frame is found", async () => {
  for (const at of [0, 100, 127, 129, 255]) {
    const dir = quickTempDir();
    const { store } = await openStore(dir);
    await store.create(record("first", { statusMessage: "here" }));
    await store.close();
    overwrite(dir, segmentsIn(dir)[0] ?? "", at, randomBytes(HOLE_BYTES));
    const { store: again, errors } = await openStore(dir);
    expect(await again.get("first"), `hole at ${at}`).toEqual(record("first", { statusMessage: "here" }));
    expect(errors).toHaveLength(1);
  }
});
