import type { Random } from '@gpuwhisk/common/system/random';
import type { Measurement } from '@gpuwhisk/bench/bench';
import { boundMeasurements, boundsOf, boundsTable } from '../replay/experiments/bounded.js';
import {
  bestOther,
  gainOver,
  intervalOf,
  meanOf,
  ratioOver,
  runAll,
  type Figures,
  type Gain,
} from '../replay/experiments/compare.js';
import { figure, gainRows, scenarioText, type Findings } from '../replay/experiments/report.js';
import {
  allPolicies,
  arriving,
  closed,
  loads,
  oursName,
  paperGpus,
  steadyRate,
} from '../replay/experiments/scenarios.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { intervalText } from '../replay/experiments/tables.js';
import { readAzureDurations, within } from '@gpuwhisk/bench/replay/jobs';
import type { Scenario } from '../replay/setting.js';
import { startOf } from '../replay/starts.js';
import { rival, type Prepared } from './faashare-parts.js';

/** Jobs that arrive in the overload experiment; their number is fixed, so that the queue ends. */
const overloadJobs = 240;
/** The platform's bound on waiting, not stretched as the jobs are, ms. */
const bestEffortMs = 30_000;
/** Most violations of a policy that counts as one that keeps SLOs. */
const mostViolations = 0.05;

/** The jobs of the overload experiment, without their arrivals. */
export function overloadBase(length: number): Scenario {
  return { ...closed(paperGpus, overloadJobs, length), bestEffortMs };
}

/** A fixed number of jobs at 1.25 times the capacity. */
export function overload(prepared: Prepared): Findings {
  const { setting, known, length, seeds, random, say } = prepared;
  const base = overloadBase(length);
  const scenario = arriving(base, loads.over, steadyRate(setting, known, base));
  const figures = runAll(setting, known, scenario, allPolicies(), seeds);
  say('  overload done');
  const bounds = boundsOf(prepared, scenario, figures, oursName, ['jctMs']);
  const than = bestThatKeepsSlos(figures);
  const better = dominating(figures);
  const jct = ratioOver(figures, oursName, than, 'jctMs', random);
  return {
    measurements: [
      figure('overloadViolations', intervalOf(figures, oursName, 'violations', random)),
      figure('overloadJct', jct),
      { name: 'overloadBetter', value: better.length },
      ...boundMeasurements('overload', bounds),
    ],
    text: [
      ...scenarioText(
        `${paperGpus} GPUs, Poisson, ${loads.over} times the capacity, ${overloadJobs} jobs`,
        figures,
        oursName,
        gainRows(figures, oursName, ['jctMs', 'p99Ms'], rival, random),
      ),
      `Ours over \`${than}\`, the best with at most ${mostViolations * 100} % violations: JCT ${intervalText(jct, true)}` +
        ` times. Better in violations and JCT: ${better.map((name) => `\`${name}\``).join(', ') || 'no baseline'}.`,
      boundsTable([{ name: 'overload', bounds }]),
    ],
  };
}

/** The baseline of least mean completion among those that keep SLOs; of fewest violations if none does. */
export function bestThatKeepsSlos(figures: Figures): string {
  const kept = [...figures].filter(
    ([name]) => name !== oursName && meanOf(figures, name, 'violations') <= mostViolations,
  );
  return kept.length === 0 ? bestOther(figures, oursName, 'violations') : bestOther(new Map(kept), oursName, 'jctMs');
}

/** Baselines that are better than ours in violations and in the mean completion time. */
export function dominating(figures: Figures): string[] {
  return [...figures.keys()].filter(
    (name) =>
      name !== oursName &&
      (['violations', 'jctMs'] as const).every(
        (metric) => meanOf(figures, name, metric) < meanOf(figures, oursName, metric),
      ),
  );
}

const shortJobs = 400;
const shortLoads = [loads.medium, loads.high, loads.full] as const;
/** Lengths of serverless work, ms. */
const shortest = 100;
const longest = 5000;

/** The jobs of serverless lengths, without their arrivals; lengths are drawn from `durations`, ms. */
export function shortBase(length: number, durations: (random: Random) => number): Scenario {
  const soloMs = within(durations, shortest, longest);
  const { coldMs: startMs } = startOf(oursName);
  return { ...closed(paperGpus, shortJobs, length, startMs), soloMs, bestEffortMs, keepsInstances: true };
}

/** Jobs of 0.1 to 5 s: each policy with its own start, and all with ours. Processes are kept for all. */
export async function serverless(prepared: Prepared, folder?: string): Promise<Findings> {
  const { setting, known, length, seeds, random, say } = prepared;
  const base = shortBase(length, await readAzureDurations(folder));
  const capacity = steadyRate(setting, known, base);
  const found: Findings = { measurements: [], text: [startsTable()] };
  const own: Gain[] = [];
  const equal: Gain[] = [];
  const experiments: Parameters<typeof boundsTable>[0][number][] = [];
  for (const load of shortLoads) {
    const scenario = arriving(base, load, capacity);
    const withOurs = runAll(setting, known, scenario, allPolicies(), seeds);
    const withOwn = runAll(
      setting,
      known,
      (name) => ({ ...scenario, startMs: startOf(name).coldMs }),
      new Map([...allPolicies()].filter(([name]) => name !== oursName)),
      seeds,
    );
    const ofOurs = withOurs.get(oursName) ?? [];
    const withEach: Figures = new Map([[oursName, ofOurs], ...withOwn]);
    own.push(gainOfLoad('jctGainShort', load, withEach, random, found.measurements));
    equal.push(gainOfLoad('jctGainShortEqual', load, withOurs, random, found.measurements));
    const title = `${paperGpus} GPUs, jobs of ${shortest / 1000} to ${longest / 1000} s, Poisson, load ${load}`;
    found.text.push(
      ...scenarioText(`${title}, each with its own start`, withEach, oursName, rowsOf(withEach, random)),
      ...scenarioText(`${title}, all with our start`, withOurs, oursName, rowsOf(withOurs, random)),
    );
    const bounds = boundsOf(prepared, scenario, withOurs, oursName, ['jctMs']);
    experiments.push({ name: `serverless, load ${load}, our start`, bounds });
    found.measurements.push(...boundMeasurements(`short.${load}`, bounds));
    say(`  serverless lengths: load ${load} done`);
  }
  found.measurements.push(figure('jctGainShort', least(own).interval));
  const { interval } = least(equal);
  found.measurements.push(figure('jctGainShortEqual', interval));
  found.measurements.push({ name: 'jctGainShortEqualHigh', value: interval.high });
  found.text.push(boundsTable(experiments));
  return found;
}

function rowsOf(figures: Figures, random: Random): string[][] {
  return gainRows(figures, oursName, ['jctMs', 'p99Ms'], rival, random);
}

function gainOfLoad(name: string, load: number, figures: Figures, random: Random, into: Measurement[]): Gain {
  const gain = gainOver(figures, oursName, bestOther(figures, oursName, 'jctMs'), 'jctMs', random);
  into.push(figure(`${name}.${load}`, gain.interval));
  return gain;
}

/** The gain of the load at which it is least. */
function least(gains: readonly Gain[]): Gain {
  return gains.reduce((a, b) => (b.interval.mean < a.interval.mean ? b : a));
}

/** The starts of all policies with their sources. */
function startsTable(): string {
  return markdownTable(
    ['policy', 'start, ms', 'in a kept process, ms', 'source'],
    [...allPolicies().keys()].map((name) => {
      const { coldMs, source } = startOf(name);
      return [`\`${name}\``, String(coldMs), '0', source];
    }),
  );
}
