// A plot of trials: times by share, a line for each size of batch, a panel for each kind of GPU.

/** A trial with its time. `share`: percent of the SMs. */
export interface PlottedTrial {
  batch: number;
  share: number;
  ms: number;
}

/** Trials on a kind of GPU; request and limit in percent, absent before the search has ended. */
export interface PlottedKind {
  title: string;
  trials: readonly PlottedTrial[];
  request?: number;
  limit?: number;
}

const [width, height] = [480, 280];
const margin = { left: 60, right: 20, top: 40, bottom: 45 };
const colours = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#8c564b'];

/** The plot as a file in SVG. */
export function trialsPlot(action: string, kinds: readonly PlottedKind[]): string {
  const panels = kinds.map((kind, at) => `<g transform="translate(0 ${24 + at * height})">${panel(kind)}</g>`);
  const total = 24 + kinds.length * height;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${total}" viewBox="0 0 ${width} ${total}" font-family="sans-serif" font-size="12">
<rect width="${width}" height="${total}" fill="white"/>
<text x="${width / 2}" y="18" text-anchor="middle" font-size="14">${escaped(action)}</text>
${panels.join('\n')}
</svg>
`;
}

function panel({ title, trials, request, limit }: PlottedKind): string {
  const mostMs = Math.max(...trials.map(({ ms }) => ms)) * 1.1;
  const x = (share: number): number => margin.left + ((width - margin.left - margin.right) * share) / 100;
  const y = (ms: number): number => height - margin.bottom - ((height - margin.top - margin.bottom) * ms) / mostMs;
  const ticks = [0, 20, 40, 60, 80, 100].map(
    (share) => `<text x="${x(share)}" y="${height - margin.bottom + 16}" text-anchor="middle">${share} %</text>`,
  );
  const levels = [0, mostMs / 2, mostMs].map(
    (ms) =>
      `<line x1="${x(0)}" x2="${x(100)}" y1="${round(y(ms))}" y2="${round(y(ms))}" stroke="#ddd"/>` +
      `<text x="${x(0) - 6}" y="${round(y(ms)) + 4}" text-anchor="end">${ms.toFixed(1)}</text>`,
  );
  const marks = [
    ...(request === undefined ? [] : [mark('request', x(request), margin.top, '')]),
    ...(limit === undefined ? [] : [mark('limit', x(limit), margin.top + 12, ' stroke-dasharray="4 3"')]),
  ];
  const batches = [...new Set(trials.map(({ batch }) => batch))].sort((one, other) => one - other);
  const lines = batches.map((batch, at) => {
    const own = trials.filter((trial) => trial.batch === batch).sort((one, other) => one.share - other.share);
    const colour = colours[at % colours.length] ?? 'black';
    const points = own.map(({ share, ms }) => `${round(x(share))},${round(y(ms))}`);
    const dots = points.map((point) => {
      const [cx = '', cy = ''] = point.split(',');
      return `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`;
    });
    const legend = `<text x="${width - margin.right}" y="${margin.top + 14 * at}" text-anchor="end" fill="${colour}">batch ${batch}</text>`;
    return `<polyline points="${points.join(' ')}" fill="none" stroke="${colour}"/>${dots.join('')}${legend}`;
  });
  const axes = `<text x="${x(50)}" y="${height - 8}" text-anchor="middle">share of the SMs; time of a batch in ms</text>`;
  const head = `<text x="${x(0)}" y="${margin.top - 16}" font-weight="bold">${escaped(title)}</text>`;
  return [head, ...levels, ...ticks, ...marks, ...lines, axes].join('\n');
}

function mark(text: string, x: number, y: number, dashes: string): string {
  const line = `<line x1="${round(x)}" x2="${round(x)}" y1="${margin.top}" y2="${height - margin.bottom}" stroke="#555"${dashes}/>`;
  return `${line}<text x="${round(x) + 4}" y="${y + 10}" fill="#555">${text}</text>`;
}

const round = (value: number): number => Math.round(value * 10) / 10;

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
