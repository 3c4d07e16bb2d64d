/* What the file is about: sales by region. The client writes such a file, the server sums it up. */
import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { once } from "node:events";

const regions = ["north", "east", "south", "west"];

/** Cents by region. */
export type Totals = Readonly<Record<string, number>>;

/** What was written. */
export interface WrittenSales {
  readonly sha256: string;
  readonly size: number;
  readonly rows: number;
  readonly totals: Totals;
}

/** Writes a CSV file of at least so many bytes. */
export async function writeSales(path: string, bytes: number): Promise<WrittenSales> {
  const file = createWriteStream(path);
  const hash = createHash("sha256");
  const totals: Record<string, number> = Object.fromEntries(regions.map((region) => [region, 0]));
  const write = async (text: string): Promise<number> => {
    hash.update(text);
    if (!file.write(text)) await once(file, "drain");
    return text.length;
  };
  let rows = 0;
  let size = await write("id,region,cents\n");
  while (size < bytes) {
    const lines: string[] = [];
    for (let line = 0; line < 10_000; line += 1) {
      const region = regions[(rows * 7) % regions.length] ?? "north";
      const cents = (rows * 7_919) % 100_000;
      totals[region] = (totals[region] ?? 0) + cents;
      lines.push(`${rows},${region},${cents}\n`);
      rows += 1;
    }
    size += await write(lines.join(""));
  }
  file.end();
  await once(file, "finish");
  return { sha256: hash.digest("hex"), size, rows, totals };
}

/** How far a sum has come: enough to go on with it in another process. */
export type PartialSum = { readonly offset: number; readonly rows: number; readonly totals: Totals };

/** Sums up whole lines; what is behind the last line break is for the next call. */
export function addLines(sum: PartialSum, bytes: Uint8Array): PartialSum {
  const end = bytes.lastIndexOf(10) + 1;
  const totals: Record<string, number> = { ...sum.totals };
  let { rows } = sum;
  for (const line of Buffer.from(bytes.buffer, bytes.byteOffset, end).toString("latin1").split("\n")) {
    const [, region = "", cents = ""] = line.split(",");
    if (region === "" || region === "region") continue;
    totals[region] = (totals[region] ?? 0) + Number(cents);
    rows += 1;
  }
  return { offset: sum.offset + end, rows, totals };
}
