// Plots of docs/smore-measurements.md from the metrics of experiment `smore`.
import type { Metrics } from '@gpuwhisk/bench/documents/markdown';
import { barChart } from '../replay/experiments/tables.js';
import { lineChart } from './line-chart.js';
import { paperComparison } from './smore-papers.js';
import { comparedPolicies, setUpNames } from './smore-tables.js';

/** A plot, if what it shows was measured. */
interface Plot {
  title: string;
  draw(metrics: NonNullable<Metrics>): string | undefined;
}

const label = 'replay, model tier, extrapolated';
const inPercent = (value: number): string => `${(100 * value).toFixed(1)} %`;

const titles = {
  dsr: 'Requests within their SLO (DSR)',
  gui: 'SMs in use above training alone (GUI)',
  sfd: 'Degradation of training (SFD)',
  sld: 'Degradation of functions (SLD)',
} as const;

function compared(metric: keyof typeof titles): Plot {
  const title = titles[metric];
  return {
    title,
    draw(metrics) {
      const bars = comparedPolicies.flatMap(([key, policy, paper]) => {
        const name = `compare.${key}.${metric}`;
        const [value, low, high] = ['', 'Low', 'High'].map((end) => metrics[`${name}${end}`]);
        if (value === undefined || low === undefined || high === undefined) return [];
        const theirs = paperComparison[key]?.[metric];
        const ofPaper =
          theirs === undefined ? [] : [{ name: `${paper}, paper`, value: theirs, low: theirs, high: theirs }];
        return [{ name: policy.replaceAll('`', ''), value, low, high }, ...ofPaper];
      });
      return bars.length === 0 ? undefined : barChart(`${title} (${label})`, bars, inPercent);
    },
  };
}

/** The values of a series by second; undefined: it was not measured. */
function seriesOf(metrics: NonNullable<Metrics>, name: string): number[] | undefined {
  const values: number[] = [];
  for (let at = 0; ; at += 1) {
    const value = metrics[`series.${name}.${at}`];
    if (value === undefined) return values.length === 0 ? undefined : values;
    values.push(value);
  }
}

function requests(series: string, title: string): Plot {
  return {
    title,
    draw(metrics) {
      const [submitted, admitted] = ['submitted', 'admitted'].map((one) => seriesOf(metrics, `${series}.${one}`));
      if (submitted === undefined || admitted === undefined) return undefined;
      const lines = [
        { name: 'submitted', values: submitted },
        { name: 'served', values: admitted },
      ];
      return lineChart(`${title} (${label})`, 'second', lines, (value) => value.toFixed(0));
    },
  };
}

const use: Plot = {
  title: 'SMs in use on one GPU',
  draw(metrics) {
    const values = seriesOf(metrics, 'single.used');
    const alone = metrics['single.usedAlone'];
    if (values === undefined || alone === undefined) return undefined;
    const lines = [
      { name: 'with functions', values },
      { name: 'training alone', values: values.map(() => alone) },
    ];
    return lineChart(`SMs in use on one GPU (${label})`, 'second', lines, inPercent);
  },
};

const degradations: Plot = {
  title: 'Functions served on one GPU by degradation',
  draw(metrics) {
    const values = seriesOf(metrics, 'single.below');
    if (values === undefined) return undefined;
    const title = `Functions on one GPU with less degradation (${label})`;
    return lineChart(title, 'degradation, tenths', [{ name: 'functions', values }], inPercent);
  },
};

const forecast: Plot = {
  title: 'Requests of a function and their forecast by minute',
  draw(metrics) {
    const [requested, expected] = ['requests', 'expected'].map((one) => seriesOf(metrics, `forecast.${one}`));
    if (requested === undefined || expected === undefined) return undefined;
    const lines = [
      { name: 'requests', values: requested },
      { name: 'expected', values: expected },
    ];
    return lineChart("Requests of a function of Azure's trace, and their forecast", 'minute', lines, (value) =>
      value.toFixed(0),
    );
  },
};

const setUps: Plot = {
  title: 'SMs in use in the six set-ups',
  draw(metrics) {
    const bars = setUpNames.flatMap((name) =>
      (['usedAlone', 'used'] as const).flatMap((one) => {
        const [value, low, high] = ['', 'Low', 'High'].map((end) => metrics[`setup.${name}.${one}${end}`]);
        if (value === undefined || low === undefined || high === undefined) return [];
        return [{ name: one === 'used' ? 'with functions' : name, value, low, high }];
      }),
    );
    return bars.length === 0 ? undefined : barChart(`SMs in use in the six set-ups (${label})`, bars, inPercent);
  },
};

/** By the name of the file in research/results, without its end. */
const plots: Readonly<Record<string, Plot>> = {
  'smore-dsr': compared('dsr'),
  'smore-gui': compared('gui'),
  'smore-sfd': compared('sfd'),
  'smore-sld': compared('sld'),
  'smore-single-requests': requests('single', 'Requests on one GPU by second'),
  'smore-single-use': use,
  'smore-single-degradation': degradations,
  'smore-forecast': forecast,
  'smore-cluster-requests': requests('cluster', 'Requests on eight GPUs by second'),
  'smore-set-ups': setUps,
};

/** The plots that can be drawn, by file name. */
export function smorePlots(metrics: Metrics): Map<string, string> {
  const drawn = Object.entries(plots).map(([name, plot]) => [`${name}.svg`, metrics && plot.draw(metrics)] as const);
  return new Map(drawn.flatMap(([file, svg]) => (svg === undefined ? [] : [[file, svg] as const])));
}

/** The image of a plot as Markdown, or that it was not measured. Throws Error for an unknown name. */
export function smorePlot(metrics: Metrics, name: string): string {
  const plot = plots[name];
  if (plot === undefined) throw new Error(`There is no plot '${name}'.`);
  const isDrawn = metrics !== undefined && plot.draw(metrics) !== undefined;
  return isDrawn ? `![${plot.title}](../research/results/${name}.svg)` : `*${plot.title}: not measured.*`;
}
