// Tables of docs/benchmarks.md from the metrics of bench `profile`.
import { serverParts } from '../profile/parts.js';
import { threadParts } from '../profile/usage.js';
import { markdownTable } from './markdown.js';
import type { Metrics } from './markdown.js';

const loads: readonly (readonly [key: string, title: string])[] = [
  ['nodejs.c1', 'Node.js, 1'],
  ['nodejs.c64', 'Node.js, 64'],
  ['nodejs.c64Concurrent', 'Node.js, 64, concurrent'],
  ['nodejs.async64', 'Node.js, 64, non-blocking'],
  ['python.c1', 'Python, 1'],
  ['python.c64', 'Python, 64'],
];

const metric = (figure: string, load: string, part: string): string => `${figure}.${load}.${part.replaceAll(' ', '-')}`;

/** A table of bench profile: `cpu` (µs a call by part) or `calls` (calls of the system a call, by thread). Throws Error for another kind. */
export function profileTable(metrics: Metrics, kind: string): string {
  if (metrics === undefined) return 'Not measured yet.';
  const value = (name: string, digits: number): string => metrics[name]?.toFixed(digits) ?? 'not measured';
  const titles = loads.map(([, title]) => title);
  if (kind === 'cpu') {
    const row = (title: string, part: string): string[] => [
      title,
      ...loads.map(([load]) => value(metric('cpuUs', load, part), 1)),
    ];
    return markdownTable(
      ['part', ...titles],
      [
        ...serverParts.map((part) => row(part, part)),
        ...threadParts.map((part) => row(part === 'server' ? '**all of the main thread**' : part, part)),
        ['calls a second', ...loads.map(([load]) => value(`requestsPerS.${load}`, 0))],
        ['main thread idle, %', ...loads.map(([load]) => ((metrics[`idleShare.${load}`] ?? NaN) * 100).toFixed(0))],
      ],
    );
  }
  if (kind !== 'calls') throw new Error(`There is no table of bench profile '${kind}'.`);
  const rows = threadParts.map((part) => [
    part,
    ...loads.map(([load]) =>
      ['reads', 'writes', 'waits'].map((figure) => value(metric(figure, load, part), 2)).join(', '),
    ),
  ]);
  return markdownTable(['reads, writes, waits of', ...titles], rows);
}
