/**
 * The commands in an append-only file of Redis, those of one transaction together. One that was cut off, which the server does
 * not take either, ends the reading.
 */
export function* readAppendOnlyFile(file: Buffer): Generator<readonly string[][]> {
  let at = 0;
  const line = (): string | undefined => {
    const end = file.indexOf("\r\n", at);
    if (end < 0) return undefined;
    const text = file.toString("utf8", at, end);
    at = end + 2;
    return text;
  };
  const command = (): string[] | undefined => {
    const head = line();
    if (head === undefined) return undefined;
    if (!head.startsWith("*")) throw new Error(`${head} begins no command.`);
    const words: string[] = [];
    for (let left = Number(head.slice(1)); left > 0; left -= 1) {
      const bytes = Number(line()?.slice(1));
      if (Number.isNaN(bytes) || at + bytes + 2 > file.length) return undefined;
      words.push(file.toString("utf8", at, at + bytes));
      at += bytes + 2;
    }
    return words;
  };
  let transaction: string[][] | undefined;
  for (let words = command(); words !== undefined; words = command()) {
    const name = words[0]?.toUpperCase();
    if (name === "MULTI") transaction = [];
    else if (name === "EXEC") {
      yield transaction ?? [];
      transaction = undefined;
    } else if (transaction === undefined) yield [words];
    else transaction.push(words);
  }
}
