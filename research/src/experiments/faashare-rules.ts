import type { Settings } from '@gpuwhisk/gpu/stages/policy-record';
import { gainOver, meanOf, runAll, type Figures } from '../replay/experiments/compare.js';
import { figure, type Findings } from '../replay/experiments/report.js';
import {
  arriving,
  closed,
  loads,
  oursName,
  paperGpus,
  paperJobs,
  steadyRate,
} from '../replay/experiments/scenarios.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { intervalText, percent, verdict } from '../replay/experiments/tables.js';
import { countingRules, newRuleCounts, type RuleCounts } from '../replay/counted.js';
import { ours, oursWith, oursWithoutQuotas, type PolicyMaker, type Scenario } from '../replay/setting.js';
import { overloadBase } from './faashare-loads.js';
import type { Prepared } from './faashare-parts.js';

/** Rules of our plan that a setting switches off, by the name of the figure. */
const switches: readonly { key: string; name: string; settings: Settings }[] = [
  { key: 'exchanges', name: 'without exchanges', settings: { maxExchanges: 0 } },
  { key: 'ahead', name: 'without sub-queues planned ahead', settings: { maxLater: 0 } },
  { key: 'minGain', name: 'beside others also where it gains nothing', settings: { minGain: 0 } },
  { key: 'alone', name: 'never beside others for the gain', settings: { minGain: 1 } },
  { key: 'maxLoad', name: 'shares of at most one GPU', settings: { maxLoad: 1 } },
  { key: 'urgent', name: 'by deadline only once it is too late', settings: { urgentSlack: 0 } },
  { key: 'deadline', name: 'strict tasks by deadline always', settings: { urgentSlack: 1000 } },
  { key: 'overdue', name: 'overdue best effort on all GPUs', settings: { overduePart: 1 } },
  { key: 'longest', name: 'the longest task not first', settings: { longestFirst: 0 } },
  { key: 'partners', name: 'beside the least loaded, untried elsewhere', settings: { maxTries: 1 } },
  { key: 'backfill', name: 'kept GPUs lent to none', settings: { backfills: 0 } },
  { key: 'holdings', name: 'without a part for each namespace', settings: { maxLoadOver: 2 } },
];

/** FaaShare, and FaaShare without each of its rules. */
function variants(): Map<string, PolicyMaker> {
  return new Map([
    [oursName, ours],
    ['without the optimiser', oursWithoutQuotas],
    ...switches.map(({ name, settings }): [string, PolicyMaker] => [name, oursWith({ settings })]),
  ]);
}

/**
 * What each rule of ours gains, and how often it decides: in the closed batch, at high load and in overload.
 */
export function rules(prepared: Prepared): Findings {
  const { setting, known, length, seeds, jobs, random, say } = prepared;
  const batch = closed(paperGpus, jobs, length);
  const over = { ...overloadBase(length), ...(jobs < paperJobs && { jobs }) };
  const steady = steadyRate(setting, known, batch);
  const scenarios: readonly [string, Scenario][] = [
    ['closed', batch],
    ['high', arriving(batch, loads.high, steady)],
    ['over', arriving(over, loads.over, steady)],
  ];
  const found: Findings = { measurements: [], text: [] };
  for (const [title, scenario] of scenarios) {
    const figures = runAll(setting, known, scenario, variants(), seeds);
    const counts = newRuleCounts();
    runAll(setting, known, scenario, new Map([[oursName, countingRules(ours, counts)]]), seeds);
    found.text.push(`**Rules of ours: ${title}**`, table(figures, random), countsTable(counts, scenario.jobs * seeds));
    for (const { key, name } of switches) {
      const { interval } = gainOver(figures, oursName, name, 'jctMs', random);
      found.measurements.push(figure(`ruleJctGain.${title}.${key}`, interval));
    }
    say(`  rules: ${title} done`);
  }
  return found;
}

function table(figures: Figures, random: Prepared['random']): string {
  return markdownTable(
    ['variant', 'JCT, s', 'makespan, s', 'violations', 'JCT of ours lower by', 'verdict'],
    [...figures.keys()].map((name) => {
      const gain = gainOver(figures, oursName, name, 'jctMs', random);
      return [
        name === oursName ? `\`${name}\`` : name,
        (meanOf(figures, name, 'jctMs') / 1000).toFixed(1),
        (meanOf(figures, name, 'makespanMs') / 1000).toFixed(1),
        percent(meanOf(figures, name, 'violations')),
        ...(name === oursName ? ['', ''] : [intervalText(gain.interval), verdict(gain)]),
      ];
    }),
  );
}

function countsTable({ decisions, starts, refusals }: RuleCounts, jobs: number): string {
  const rows = (kind: string, counts: ReadonlyMap<string, number>): string[][] =>
    [...counts].sort(([, a], [, b]) => b - a).map(([what, count]) => [kind, what, (count / jobs).toFixed(3)]);
  return markdownTable(
    ['', 'rule', 'times for each job'],
    [
      ['decision', '', (decisions / jobs).toFixed(3)],
      ...rows('start', starts),
      ...rows('GPU refused to a waiting task', refusals),
    ],
  );
}
