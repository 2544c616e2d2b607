// The table of docs/benchmarks.md that sets our figures beside the least that their shape costs on the same machine.
import { bars } from '../bars.js';
import { markdownTable } from './markdown.js';
import type { Result } from '../report.js';

/** A figure, and the one of the same run that no platform of this shape goes beyond. */
type Row = readonly [bench: string, metric: string, floor: string, what: string];

const rows: readonly Row[] = [
  ['invoke', 'addedP50Ms', 'floorAddedP50Ms', 'floor server'],
  ['invoke', 'addedP50PythonMs', 'floorAddedP50PythonMs', 'floor server'],
  ['invoke', 'ratio64', 'floorRatio64', 'floor server'],
  ['invoke', 'ratio64Python', 'floorRatio64Python', 'floor server'],
  ['invoke', 'serverCpuSPer1000.c64', 'floorServerCpuSPer1000', 'floor server'],
  ['invoke', 'functionCpuSPer1000.nodejs', 'floorFunctionCpuSPer1000', 'floor server'],
  ['invoke', 'functionCpuSPer1000.python', 'floorFunctionCpuSPer1000Python', 'floor server'],
  ['cold', 'coldMs.nodejs', 'bareMs.nodejs', 'Node.js alone in the sandbox'],
  ['cold', 'coldMs.python', 'bareMs.python', 'Python alone in the sandbox'],
  ['footprint', 'readyMs', 'bareReadyMs', 'start of the bare server'],
];

/** A row for each figure of which a run has measured the floor, too. */
export function floorTable(runs: ReadonlyMap<string, Result>): string {
  return markdownTable(
    ['figure', 'bar', 'measured', 'floor', 'floor is of'],
    rows.flatMap(([bench, metric, floor, what]) => {
      const { [metric]: measured, [floor]: least } = runs.get(bench)?.metrics ?? {};
      if (measured === undefined || least === undefined) return [];
      const bar = bars.find((one) => one.bench === bench && one.metric === metric);
      return [[`\`${metric}\``, bar === undefined ? '' : String(bar.value), digits(measured), digits(least), what]];
    }),
  );
}

const digits = (value: number): string => value.toLocaleString('en-US', { maximumSignificantDigits: 3 });
