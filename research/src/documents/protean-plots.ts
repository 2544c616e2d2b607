// Plots of docs/protean-measurements.md from the metrics of experiment `protean`.
import { barChart } from '../replay/experiments/tables.js';
import { lineChart, type Series } from './line-chart.js';
import { schemeNames } from './protean-papers.js';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

type Measured = NonNullable<Metrics>;

/** A plot, if what it shows was measured. */
interface Plot {
  title: string;
  draw(metrics: Measured): string | undefined;
}

const label = 'replay, extrapolated';
const plain = (title: string): string => title.replaceAll('`', '');
const inTimes = (value: number): string => value.toFixed(1);

/** The rows of values that were measured, of names that end in what `ends` gives. */
function series(
  metrics: Measured,
  names: readonly (readonly [string, string])[],
  ends: (name: string) => string[],
): Series[] {
  return names.flatMap(([key, title]) => {
    const values = ends(key).flatMap((name) => metrics[name] ?? []);
    return values.length === ends(key).length ? [{ name: plain(title), values }] : [];
  });
}

const percents = Array.from({ length: 19 }, (_, at) => 5 * (at + 1));

function distribution(pattern: 'bursts' | 'spread'): Plot {
  const title = `Latency of strict requests by percentile, ${pattern}`;
  return {
    title,
    draw(metrics) {
      const lines = series(metrics, schemeNames, (key) =>
        percents.map((one) => `compliance.${pattern}.${key}.q${one}`),
      );
      if (lines.length === 0) return undefined;
      return lineChart(`${title}, over time alone (${label})`, 'percentile, from 5 in steps of 5', lines, inTimes);
    },
  };
}

const gainPlot: Plot = {
  title: 'Strict requests within their SLO',
  draw(metrics) {
    const bars = (['bursts', 'spread'] as const).flatMap((pattern) =>
      schemeNames.flatMap(([key, title]) => {
        const value = metrics[`compliance.${pattern}.${key}.met`];
        return value === undefined ? [] : [{ name: `${plain(title)}, ${pattern}`, value, low: value, high: value }];
      }),
    );
    if (bars.length === 0) return undefined;
    return barChart(`Strict requests within their SLO (${label})`, bars, (value) => `${(100 * value).toFixed(1)} %`);
  },
};

/** By the name of the file in research/results, without its end. */
const plots: Readonly<Record<string, Plot>> = {
  'protean-compliance': gainPlot,
  'protean-latency-bursts': distribution('bursts'),
  'protean-latency-spread': distribution('spread'),
};

/** The plots that can be drawn, by file name. */
export function proteanPlots(metrics: Metrics): Map<string, string> {
  const drawn = Object.entries(plots).map(([name, plot]) => [`${name}.svg`, metrics && plot.draw(metrics)] as const);
  return new Map(drawn.flatMap(([file, svg]) => (svg === undefined ? [] : [[file, svg] as const])));
}

/** The image of a plot as Markdown, or that it was not measured. Throws Error for an unknown name. */
export function proteanPlot(metrics: Metrics, name: string): string {
  const plot = plots[name];
  if (plot === undefined) throw new Error(`There is no plot '${name}' of experiment protean.`);
  const isDrawn = metrics !== undefined && plot.draw(metrics) !== undefined;
  return isDrawn ? `![${plot.title}](../research/results/${name}.svg)` : `*${plot.title}: not measured.*`;
}
