/** One bar with the ends of its interval. */
export interface Bar {
  name: string;
  value: number;
  low: number;
  high: number;
}

const width = 640;
const rowHeight = 24;
const labelWidth = 150;
const valueWidth = 70;
const top = 40;

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Bars from left to right with their 95 % intervals, as an SVG document. Values are at least 0. */
export function barChart(title: string, bars: readonly Bar[], format: (value: number) => string): string {
  const greatest = Math.max(...bars.map(({ high }) => high), Number.MIN_VALUE);
  const x = (value: number): string =>
    (labelWidth + (Math.max(0, value) / greatest) * (width - labelWidth - valueWidth)).toFixed(1);
  const rows = bars.map(({ name, value, low, high }, i) => {
    const y = top + i * rowHeight;
    const middle = y + rowHeight / 2;
    return [
      `<text x="${labelWidth - 8}" y="${middle + 4}" text-anchor="end">${escape(name)}</text>`,
      `<rect x="${labelWidth}" y="${y + 4}" width="${(Number(x(value)) - labelWidth).toFixed(1)}" height="${rowHeight - 8}" fill="#5b8fc9"/>`,
      `<path d="M${x(low)} ${middle}H${x(high)}" stroke="#222"/>`,
      `<text x="${Number(x(high)) + 6}" y="${middle + 4}">${escape(format(value))}</text>`,
    ].join('\n');
  });
  const height = top + bars.length * rowHeight + 10;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="10" y="22" font-size="14">${escape(title)}</text>`,
    ...rows,
    '</svg>\n',
  ].join('\n');
}
