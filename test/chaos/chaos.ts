/*
 * The load-balanced example under everything that can happen to it at once: instances that are killed, sleep or are told to
 * end, a backend that is killed or sleeps, and networks between them that break or go dead without a word. What clients saw, what
 * handlers did and what the backend was told are compared afterwards.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { expect, test } from "vitest";

import { InstanceProcess } from "../../examples/load-balanced/src/instance-process.ts";
import { RoundRobinProxy } from "../../examples/load-balanced/src/proxy.ts";
import { startTcpProxy } from "../../packages/store-redis/test/support/tcp-proxy.ts";
import { assertOrderly } from "../recovery/assert-orderly.ts";
import { readWitness } from "../recovery/witness.ts";
import type { Backend } from "./backend.ts";
import { checkHistory, neverHappened } from "./check-history.ts";
import { ChaosClient, type ClientNotes } from "./client.ts";
import { disturb, type Fault } from "./faults.ts";
import { faultsOfFleet } from "./fleet-faults.ts";
import { seededRandom } from "./random.ts";

const seconds = Number(process.env["LONGJOBS_CHAOS_SECONDS"] ?? 20);
const seed = Number(process.env["LONGJOBS_SEED"] ?? Date.now() % 2 ** 31);
const program = fileURLToPath(new URL("instance.ts", import.meta.url));
/** Short, so that work changes its instance all the time. */
const leaseMs = 1_500;
const instanceCount = 3;
const clientCount = 40;
const readerCount = 2;
/** On a slow machine it takes longer until each fault has happened. */
const longestMs = 3 * seconds * 1_000;
/** From when everything is mended: far longer than a lease, a time-out and a few polls. */
const patienceMs = 60_000;

/**
 * What an instance may report: that its store was away, and what follows from that. One that is told to end does not wait for its
 * store for ever, and closes it; what was under way then is refused.
 */
const expectedReports = /^(?:store_unavailable|store_closed|lease_lost|unknown_task|task_terminal)\b/;

/** Registers the run on a backend. */
export function chaosTest(name: string, startBackend: (name: string) => Promise<Backend>): void {
  test(
    `${seconds} s of chaos on ${name}: nothing accepted is lost, done twice at once, or shown otherwise later`,
    { timeout: longestMs + 3 * patienceMs },
    async () => {
      const place = `chaos_${randomBytes(4).toString("hex")}`;
      const backend = await startBackend(place);
      const dir = await mkdtemp(join(tmpdir(), "longjobs-chaos-"));
      const witness = join(dir, "witness");
      await writeFile(witness, "");
      const ways = await Promise.all(
        Array.from({ length: instanceCount }, () => startTcpProxy(backend.port)),
      );
      const instances = ways.map(({ port }) => {
        const url = backend.urlAt(port);
        const where = { STORE: backend.kind, STORE_NAME: place, REDIS_URL: url, POSTGRES_URL: url };
        return new InstanceProcess({ ...where, LEASE_MS: String(leaseMs), WITNESS: witness }, program);
      });
      const said = `seed ${seed}; the witness: ${witness}`;
      // A run that hangs is given up without its last steps: an instance that sleeps would not notice.
      const killAll = (): void => instances.forEach((instance) => void instance.kill());
      process.once("exit", killAll);
      let balancer: RoundRobinProxy | undefined;
      try {
        await Promise.all(instances.map((instance) => instance.start()));
        balancer = new RoundRobinProxy(instances.map(({ port }) => port));
        const { counts, notes } = await live(await balancer.open(), faultsOfFleet(backend, instances, ways));
        for (const instance of instances) await instance.stop();

        for (const [fault, count] of counts) expect(count, `${fault} happened; ${said}`).toBeGreaterThan(0);
        const sights = readWitness(witness);
        const versions = await backend.readVersions();
        const history = { ...notes, sights, versions };
        expect(neverHappened(history), said).toEqual([]);
        expect(checkHistory(history), said).toEqual([]);
        assertOrderly(sights, said);
        const reports = sights.flatMap(({ did, reason }) => (did === "reported" ? (reason ?? "") : []));
        expect(
          reports.filter((report) => !expectedReports.test(report)),
          said,
        ).toEqual([]);
        for (const { crashes, log } of instances) expect(crashes, `${said}\n${log}`).toEqual([]);
        expect(await backend.readLasting(), said).toEqual([]);
        console.log(summary(name, counts, notes, versions.length, sights));
        await rm(dir, { recursive: true });
      } finally {
        process.off("exit", killAll);
        balancer?.close();
        await Promise.all(instances.map((instance) => instance.kill()));
        await Promise.all(ways.map((way) => way.close()));
        await backend.remove();
      }
    },
  );
}

/** Lets clients work and things go wrong, then mends everything and lets the clients finish. */
async function live(
  url: string,
  faults: readonly Fault[],
): Promise<{ readonly counts: ReadonlyMap<string, number>; readonly notes: ClientNotes }> {
  const notes: ClientNotes = { accepted: [], reads: [], answers: [], cancelled: new Set(), refusals: [] };
  const patience = new AbortController();
  const client = (name: string, index: number): ChaosClient =>
    new ChaosClient(`${name} ${index}`, url, seededRandom(seed + index), notes, patience.signal);
  const mended = new AbortController();
  const finished = new AbortController();
  const working = Array.from({ length: clientCount }, (_, index) =>
    client("client", index + 1).work(mended.signal),
  );
  const looking = Array.from({ length: readerCount }, (_, index) =>
    client("reader", 1_000 + index).look(finished.signal),
  );
  let patienceTimer: NodeJS.Timeout | undefined;
  try {
    const counts = await disturb(faults, seededRandom(seed), seconds * 1_000, AbortSignal.timeout(longestMs));
    mended.abort();
    patienceTimer = setTimeout(() => patience.abort(), patienceMs);
    await Promise.all(working);
    return { counts, notes };
  } finally {
    clearTimeout(patienceTimer);
    for (const each of [mended, patience, finished]) each.abort();
    await Promise.allSettled([...working, ...looking]);
  }
}

function summary(
  name: string,
  counts: ReadonlyMap<string, number>,
  { accepted, answers, reads }: ClientNotes,
  versions: number,
  sights: ReturnType<typeof readWitness>,
): string {
  const runs = sights.filter(({ did }) => did === "began").length;
  const faults = [...counts].map(([fault, count]) => `${fault}: ${count}`).join(", ");
  return [
    `chaos on ${name}, seed ${seed}, ${seconds} s. ${faults}.`,
    `${accepted.length} tasks accepted, ${runs} runs, ${answers.length} answers, ${reads.length} reads, ${versions} writes.`,
  ].join("\n");
}
