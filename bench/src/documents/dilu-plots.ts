// Plots of docs/dilu-measurements.md from the metrics of bench `dilu`.
import { barChart } from '../replay/experiments/tables.js';
import { sharingWays } from './dilu-sharing-tables.js';
import { lineChart } from './line-chart.js';
import type { Metrics } from './smore-tables.js';

/** A plot, if what it shows was measured. */
interface Plot {
  title: string;
  draw(metrics: NonNullable<Metrics>): string | undefined;
}

const label = 'replay, extrapolated';
const inPercent = (value: number): string => `${(100 * value).toFixed(1)} %`;
const number =
  (digits: number) =>
  (value: number): string =>
    value.toFixed(digits);

function byWay(figure: string, title: string, format: (value: number) => string): Plot {
  return {
    title,
    draw(metrics) {
      const bars = sharingWays.flatMap(([way, name]) => {
        const [value, low, high] = ['', 'Low', 'High'].map((end) => metrics[`endToEnd.${way}.${figure}${end}`]);
        if (value === undefined || low === undefined || high === undefined) return [];
        return [{ name: name.replaceAll('`', ''), value, low, high }];
      });
      return bars.length === 0 ? undefined : barChart(`${title} (${label})`, bars, format);
    },
  };
}

/** The values of a series; undefined: it was not measured. */
function seriesOf(metrics: NonNullable<Metrics>, name: string): number[] | undefined {
  const values: number[] = [];
  for (let at = 0; ; at += 1) {
    const value = metrics[`trace.${name}.${at}`];
    if (value === undefined) return values.length === 0 ? undefined : values;
    values.push(value);
  }
}

const scaled = [
  ['dilu', 'dilu'],
  ['infless', 'infless'],
  ['fastGshare', 'reactive at once'],
] as const;

function trace(
  names: readonly (readonly [series: string, name: string])[],
  title: string,
  format: (value: number) => string,
): Plot {
  return {
    title,
    draw(metrics) {
      const lines = names.flatMap(([series, name]) => {
        const values = seriesOf(metrics, series);
        return values === undefined ? [] : [{ name, values }];
      });
      return lines.length < names.length ? undefined : lineChart(title, 'time, steps of 20 s', lines, format);
    },
  };
}

const bounds = [
  ['omega', 'Ω', [0.8, 0.9, 1, 1.1, 1.25, 1.5]],
  ['gamma', 'γ', [1, 1.25, 1.5, 1.75, 2, 3]],
] as const;

const oversubscription: Plot = {
  title: 'GPUs in use by the bounds of oversubscription, 3,200 drawn instances',
  draw(metrics) {
    const bars = bounds.flatMap(([key, symbol, values]) =>
      values.flatMap((of) => {
        const value = metrics[`packing.${key}.${of}.gpus`];
        return value === undefined ? [] : [{ name: `${symbol} = ${of}`, value, low: value, high: value }];
      }),
    );
    return bars.length === 0 ? undefined : barChart(oversubscription.title, bars, number(0));
  },
};

/** By the name of the file in bench/results, without its end. */
const plots: Readonly<Record<string, Plot>> = {
  'dilu-gpus': byWay('mostGpus', 'GPUs for four training jobs and three functions', number(1)),
  'dilu-late': byWay('svr', 'Requests later than their SLO', inPercent),
  'dilu-jct': byWay('jct', 'JCT of training over exclusive', number(2)),
  'dilu-requests': byWay('inferenceThroughput', 'Requests in time for each GPU, over exclusive', number(2)),
  'dilu-steps': byWay('trainingThroughput', 'Training steps for each GPU, over exclusive', number(2)),
  'dilu-trace-requests': trace([['requests', 'requests']], 'Requests of a second on the bursty trace', number(0)),
  'dilu-trace-instances': trace(
    scaled.map(([way, name]) => [`${way}.instances`, name] as const),
    'Instances on the bursty trace',
    number(0),
  ),
  'dilu-trace-late': trace(
    scaled.map(([way, name]) => [`${way}.late`, name] as const),
    'Requests later than their SLO on the bursty trace',
    inPercent,
  ),
  'dilu-oversubscription': oversubscription,
};

/** The plots that can be drawn, by file name. */
export function diluPlots(metrics: Metrics): Map<string, string> {
  const drawn = Object.entries(plots).map(([name, plot]) => [`${name}.svg`, metrics && plot.draw(metrics)] as const);
  return new Map(drawn.flatMap(([file, svg]) => (svg === undefined ? [] : [[file, svg] as const])));
}

/** The image of a plot as Markdown, or that it was not measured. Throws Error for an unknown name. */
export function diluPlot(metrics: Metrics, name: string): string {
  const plot = plots[name];
  if (plot === undefined) throw new Error(`There is no plot '${name}' of bench dilu.`);
  const isDrawn = metrics !== undefined && plot.draw(metrics) !== undefined;
  return isDrawn ? `![${plot.title}](../bench/results/${name}.svg)` : `*${plot.title}: not measured.*`;
}
