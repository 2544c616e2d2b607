// The table of README.md that compares a warm call with other platforms', from the metrics of `invoke --beside`.
import { markdownTable } from './markdown.js';
import type { Metrics } from './markdown.js';

/** Names of the platforms that docs/benchmarks.md says how to set up, by their name on the command line. */
const titles: Readonly<Record<string, string>> = {
  iluvatar: 'Ilúvatar, Python',
};

/** One row: metrics of the added latency and of the ratio, and the end of the names of the processor times. */
type Row = readonly [title: string, added: string, ratio: string, load: string];

/** A row each for our Node.js and Python no-op and for every peer. Throws Error if a latency or a ratio is missing. */
export function besideTable(metrics: Metrics): string {
  if (metrics === undefined) return 'Not measured yet.';
  const peers = Object.keys(metrics).flatMap((name) => /^ratio64\.(.+)$/.exec(name)?.[1] ?? []);
  const rows: Row[] = [
    ['gpuwhisk, Node.js', 'addedP50Ms', 'ratio64', 'c64'],
    ['gpuwhisk, Python', 'addedP50PythonMs', 'ratio64Python', 'c64Python'],
    ...peers.map((name): Row => [titles[name] ?? name, `addedP50Ms.${name}`, `ratio64.${name}`, `${name}.c64`]),
  ];
  const measured = (name: string, digits: number): string => {
    const value = metrics[name];
    if (value === undefined) throw new Error(`bench/results/beside.json has no metric '${name}'.`);
    return value.toFixed(digits);
  };
  const ifMeasured = (name: string): string => metrics[name]?.toFixed(3) ?? 'not measured';
  return markdownTable(
    [
      'no-op',
      'median above the bare server, 1 connection, ms',
      'throughput / bare server, 64',
      'server, s',
      'functions, s',
    ],
    rows.map(([title, added, ratio, load]) => [
      title,
      measured(added, 3),
      measured(ratio, 3),
      ifMeasured(`serverCpuSPer1000.${load}`),
      ifMeasured(`sandboxCpuSPer1000.${load}`),
    ]),
  );
}
