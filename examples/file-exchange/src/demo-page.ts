/*
 * Uploads a file through the page in a headless Chromium: the connection breaks in the middle, the page is loaded anew, and the
 * upload goes on where it was. Exits with 0 when the published file is the one that was chosen.
 */
import assert from "node:assert/strict";
import { execFileSync, fork } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const size = 20 * 1024 * 1024;
const dir = await mkdtemp(join(tmpdir(), "longjobs-page-"));
const source = join(dir, "sales.csv");
await writeFile(source, randomBytes(size));
const port = await freePort();
const server = fork(join(import.meta.dirname, "server.ts"), {
  env: { ...process.env, DATA_DIR: join(dir, "data"), PORT: String(port) },
});
await once(server, "message");
const browser = await chromium.launch({ executablePath: findChromium(), args: ["--no-sandbox"] });

try {
  const context = await browser.newContext();
  const page = await context.newPage();
  const url = `http://127.0.0.1:${port}/`;
  const offsets: number[] = [];
  page.on("request", (request) => {
    if (request.method() === "PATCH") offsets.push(Number(request.headers()["upload-offset"]));
  });

  let left = 8;
  await page.route("**/files/**", (route) =>
    route.request().method() === "PATCH" && (left -= 1) < 0 ? route.abort() : route.continue(),
  );
  await page.goto(url);
  await page.setInputFiles("#file", source);
  await page.getByText(/^Stopped/).waitFor();
  const stoppedAt = await page.locator("#progress").evaluate((bar) => (bar as HTMLProgressElement).value);
  assert.ok(stoppedAt > 0.3 && stoppedAt < 0.7, `It stopped in the middle, at ${stoppedAt}.`);
  console.log(`The connection broke at ${Math.floor(stoppedAt * 100)} %.`);

  await page.unroute("**/files/**");
  offsets.length = 0;
  await page.goto(url);
  await page.setInputFiles("#file", source);
  await page.getByText("Published.").waitFor();
  assert.equal(await page.locator("body").getAttribute("data-resumed"), "yes");
  assert.ok(Math.min(...offsets) > size * 0.3, "What was sent before is not sent again.");
  console.log(
    `After a reload it went on at ${Math.floor((100 * Math.min(...offsets)) / size)} %, and was published.`,
  );

  const published = await readFile(join(dir, "data/inbox/from-people/sales.csv"));
  const digest = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
  assert.equal(digest(published), digest(await readFile(source)));
  console.log("\nAll as expected.");
} finally {
  await browser.close();
  server.kill("SIGKILL");
  await rm(dir, { recursive: true, force: true });
}

function findChromium(): string {
  const names = [process.env["CHROMIUM"] ?? "chromium", "chromium-browser", "google-chrome"];
  for (const name of names) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // The next name may be there.
    }
  }
  throw new Error("There is no Chromium: install it (apt-get install chromium), or name it in CHROMIUM.");
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  return address !== null && typeof address === "object" ? address.port : 0;
}
