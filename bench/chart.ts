/** A small line chart with a logarithmic x axis and a y axis from zero. */
export interface Chart {
  readonly title: string;
  readonly xLabel: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
}

const width = 640;
const height = 300;
const left = 80;
const right = 20;
const top = 40;
const bottom = 50;

/** The chart as an SVG document that reads in light and dark themes. */
export function lineChart({ title, xLabel, points }: Chart): string {
  const xs = points.map(({ x }) => Math.log10(x));
  const [least, most] = [Math.min(...xs), Math.max(...xs)];
  const highest = Math.max(...points.map(({ y }) => y), 1) * 1.1;
  const toX = (x: number): number =>
    left + ((Math.log10(x) - least) / (most - least || 1)) * (width - left - right);
  const toY = (y: number): number => height - bottom - (y / highest) * (height - top - bottom);
  const path = points
    .map(({ x, y }, index) => `${index === 0 ? "M" : "L"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`)
    .join(" ");
  const marks = points.map(
    ({ x, y }) =>
      `<circle cx="${toX(x).toFixed(1)}" cy="${toY(y).toFixed(1)}" r="3.5" fill="#2563eb"/>` +
      text(toX(x), toY(y) - 9, Math.round(y).toLocaleString("en"), "middle") +
      text(toX(x), height - bottom + 18, x.toLocaleString("en"), "middle"),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img" aria-label="${title}" font-family="sans-serif" font-size="12">
<rect width="${width}" height="${height}" fill="#ffffff"/>
${text(left, 22, title, "start", 15)}
<path d="M${left} ${top} V${height - bottom} H${width - right}" fill="none" stroke="#94a3b8"/>
<path d="${path}" fill="none" stroke="#2563eb" stroke-width="2"/>
${marks.join("\n")}
${text((left + width - right) / 2, height - 10, xLabel, "middle")}
</svg>
`;
}

function text(x: number, y: number, words: string, anchor: string, size = 12): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" font-size="${size}" fill="#334155">${words}</text>`;
}
