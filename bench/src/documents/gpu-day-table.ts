// What the GPU kit found on real devices, as docs/gpu-day.md shows it.
import { markdownTable } from './markdown.js';
import { rounded } from '../report.js';
import type { KitReport } from '../gpu-day/report.js';

const notYet = "**The kit has not run on a GPU yet.** NVIDIA's interfaces are implemented from their documentation.";

const shortened = (text: string): string => text.replaceAll('|', '\\|').replace(/\s+/g, ' ').slice(0, 160);

function checksOf(report: KitReport): string {
  const { device, driver, date, stages, commit } = report;
  const rows = stages.flatMap(({ stage, state, problem, checks }) => [
    ...(problem === undefined ? [] : [[stage, `(${state})`, 'failed', shortened(problem)]]),
    ...checks.map(({ name, passed, detail }) => [stage, name, passed ? 'passed' : 'failed', shortened(detail)]),
  ]);
  const title = `${device}, driver ${driver}, ${date}, commit \`${commit.slice(0, 7)}\`:`;
  return `${title}\n\n${markdownTable(['stage', 'check', 'result', 'observed'], rows)}`;
}

function figuresOf({ device, driver, date, stages }: KitReport): string {
  const rows = stages.flatMap(({ stage, metrics }) =>
    Object.entries(metrics).map(([name, value]) => [stage, `\`${name}\``, String(rounded(value))]),
  );
  return `${device}, driver ${driver}, ${date}:\n\n${markdownTable(['stage', 'figure', 'value'], rows)}`;
}

/** The checks or the figures of all runs on GPUs; a sentence if there is none. */
export function gpuDayText(reports: readonly KitReport[], kind: string): string {
  if (reports.length === 0) return notYet;
  return reports.map(kind === 'figures' ? figuresOf : checksOf).join('\n\n');
}
