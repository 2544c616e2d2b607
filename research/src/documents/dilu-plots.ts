// Plots of docs/dilu-measurements.md from the metrics of experiment `dilu`.
import { barChart } from '../replay/experiments/tables.js';
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';

/** A plot, if what it shows was measured. */
interface Plot {
  title: string;
  draw(metrics: NonNullable<Metrics>): string | undefined;
}

const number =
  (digits: number) =>
  (value: number): string =>
    value.toFixed(digits);

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

/** By the name of the file in research/results, without its end. */
const plots: Readonly<Record<string, Plot>> = {
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
  if (plot === undefined) throw new Error(`There is no plot '${name}' of experiment dilu.`);
  const isDrawn = metrics !== undefined && plot.draw(metrics) !== undefined;
  return isDrawn ? `![${plot.title}](../research/results/${name}.svg)` : `*${plot.title}: not measured.*`;
}
