/** A row of values at equal distances. */
export interface Series {
  name: string;
  values: readonly number[];
}

const width = 640;
const height = 260;
const left = 60;
const right = 150;
const top = 40;
const bottom = 40;
const colours = ['#c8702a', '#2a6fc8', '#5a9e4b', '#8858a8'];

const escape = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Lines over the index of their values, from 0 up, as an SVG document. Values are at least 0. */
export function lineChart(
  title: string,
  xTitle: string,
  all: readonly Series[],
  format: (value: number) => string,
): string {
  const most = Math.max(...all.flatMap(({ values }) => values), Number.MIN_VALUE);
  const count = Math.max(...all.map(({ values }) => values.length), 2);
  const x = (at: number): string => (left + (at / (count - 1)) * (width - left - right)).toFixed(1);
  const y = (value: number): string => (height - bottom - (value / most) * (height - top - bottom)).toFixed(1);
  const lines = all.map(({ name, values }, at) => {
    const colour = colours[at % colours.length] ?? '#222';
    const points = values.map((value, i) => `${x(i)},${y(value)}`).join(' ');
    return [
      `<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      `<text x="${width - right + 10}" y="${top + 18 * at + 4}" fill="${colour}">${escape(name)}</text>`,
    ].join('\n');
  });
  const axis = [
    `<path d="M${left} ${top}V${height - bottom}H${width - right}" fill="none" stroke="#222"/>`,
    `<text x="${left - 6}" y="${y(most)}" text-anchor="end">${escape(format(most))}</text>`,
    `<text x="${left - 6}" y="${height - bottom}" text-anchor="end">${escape(format(0))}</text>`,
    `<text x="${left}" y="${height - 18}">0</text>`,
    `<text x="${width - right}" y="${height - 18}" text-anchor="end">${count - 1}</text>`,
    `<text x="${(left + width - right) / 2}" y="${height - 18}" text-anchor="middle">${escape(xTitle)}</text>`,
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="10" y="22" font-size="14">${escape(title)}</text>`,
    ...axis,
    ...lines,
    '</svg>\n',
  ].join('\n');
}
