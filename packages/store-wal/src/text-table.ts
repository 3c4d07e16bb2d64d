/** One column; numbers stand to the right. */
export interface Column {
  readonly title: string;
  readonly isNumber?: boolean;
}

/** Lines of text with aligned columns. */
export function textTable(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const widths = columns.map(({ title }, column) =>
    rows.reduce((widest, row) => Math.max(widest, row[column]?.length ?? 0), title.length),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return columns[column]?.isNumber === true ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return [line(columns.map(({ title }) => title)), ...rows.map(line)];
}

/** A number of bytes for people. */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const exponent = Math.min(Math.floor(Math.log2(bytes) / 10), 4);
  return `${(bytes / 1024 ** exponent).toFixed(1)} ${["B", "KiB", "MiB", "GiB", "TiB"][exponent]}`;
}

/** What a log contains must not steer the terminal that shows it: everything invisible is written out. */
export function printable(text: string): string {
  return text.replaceAll(
    /(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}
