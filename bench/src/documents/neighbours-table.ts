// The table of GUARANTEES.md with the latency of a victim beside hostile namespaces.
import { bars, reaches } from '../bars.js';
import { markdownTable } from './markdown.js';
import type { Result } from '../report.js';

const ratio = 'neighbourP99Over.';

/** A row for each load, with a note where a figure misses its bar. Throws Error if a figure was not measured. */
export function neighboursTable(metrics: Result['metrics'] = {}): string {
  const own = bars.filter(({ bench, metric }) => bench === 'neighbours' && metric.startsWith(ratio));
  const loads = [...new Set(own.map(({ metric }) => metric.slice(ratio.length).replace(/\.\d+$/, '')))];
  const figure = (metric: string): number => {
    const value = metrics[metric];
    if (value === undefined) throw new Error(`bench/results/neighbours.json has no metric '${metric}'.`);
    return value;
  };
  const judged = (load: string): string => {
    const bar = own.find(({ metric }) => metric === ratio + load);
    const value = figure(ratio + load);
    return value.toFixed(2) + (bar !== undefined && !reaches(bar, value) ? ', missed' : '');
  };
  const pause = (load: string): string =>
    Math.max(...[1, 20].map((count) => figure(`longestPauseMs.${load}.${count}`))).toFixed(1);
  const rows = loads.map((load) => [`\`${load}\``, judged(`${load}.1`), judged(`${load}.20`), pause(load)]);
  return markdownTable(['load', 'one namespace, times', '20 namespaces, times', 'longest pause, ms'], rows);
}
