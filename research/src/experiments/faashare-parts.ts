import { seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { boundMeasurements, boundsOf, boundsTable } from '../replay/experiments/bounded.js';
import { runAll, type Figures, gainOver, intervalOf, meanOf } from '../replay/experiments/compare.js';
import {
  figure,
  gainRows,
  scenarioMeasurements,
  scenarioText,
  type Findings,
  sourcesTable,
} from '../replay/experiments/report.js';
import {
  ablatedPolicies,
  allPolicies,
  arriving,
  oursName,
  queueOrders,
  perturbed,
  closed,
  lengthFactor,
  loads,
  open,
  paperGpus,
  paperJobs,
  steadyRate,
} from '../replay/experiments/scenarios.js';
import { markdownTable } from '@gpuwhisk/bench/documents/markdown';
import { intervalText, percent, policyTable } from '../replay/experiments/tables.js';
import { bursty, fromTrace, poisson, readAzureConversations } from '@gpuwhisk/bench/replay/jobs';
import { learn, ours, runSeed, type Known, type Setting } from '../replay/setting.js';
import { coldStartMs } from '../replay/starts.js';
import { median } from '@gpuwhisk/bench/statistics';

/** A setting, the data learned in it before its experiments, and the options of its runs. */
export interface Prepared {
  setting: Setting;
  known: readonly Known[];
  length: number;
  seeds: number;
  /** Jobs of a scenario, the paper's number but in tests. */
  jobs: number;
  random: Random;
  say(line: string): void;
}

/** Baseline that the paper's own claims name. */
export const rival = 'fast-gshare';

/** Learns in a setting and computes the length of its jobs. */
export function prepare(
  setting: Setting,
  seed: number,
  seeds: number,
  say: Prepared['say'],
  jobs = paperJobs,
): Prepared {
  const known = learn(setting, seed);
  const length = lengthFactor(setting, known, jobs);
  say(`  ${setting.name}: ${setting.catalogue.length} workloads, ${known.length} models, jobs of ${length} batches`);
  return { setting, known, length, seeds, jobs, random: seededRandom(seed), say };
}

/** A closed batch, and open arrivals at the three loads (FaaShare, figures 10 and 11). */
export function overall(
  prepared: Prepared,
  chosen: readonly (keyof typeof loads)[],
): Findings & { figures: Map<string, Figures> } {
  const { setting, known, length, seeds, jobs, random, say } = prepared;
  const batch = closed(paperGpus, jobs, length);
  const rate = steadyRate(setting, known, batch);
  const scenarios = new Map([
    ['closed', batch],
    ...chosen.map((load) => [load, arriving(batch, loads[load], rate)] as const),
  ]);
  const sources = ['**Where the figures of the workloads are from**', sourcesTable(setting)];
  const found: Findings & { figures: Map<string, Figures> } = { measurements: [], text: sources, figures: new Map() };
  const experiments: Parameters<typeof boundsTable>[0][number][] = [];
  for (const [name, scenario] of scenarios) {
    const figures = runAll(setting, known, scenario, allPolicies(), seeds);
    found.figures.set(name, figures);
    found.measurements.push(...scenarioMeasurements(`${setting.name}.${name}`, figures, oursName, random));
    const title = name === 'closed' ? `all ${jobs} jobs at the start` : `Poisson, ${name} load`;
    const metrics = name === 'closed' ? (['jctMs', 'makespanMs'] as const) : (['jctMs', 'p99Ms'] as const);
    found.text.push(
      ...scenarioText(
        `${paperGpus} GPUs, ${title}`,
        figures,
        oursName,
        gainRows(figures, oursName, metrics, rival, random),
      ),
    );
    const bounds = boundsOf(
      prepared,
      scenario,
      figures,
      oursName,
      name === 'closed' ? ['makespanMs', 'jctMs'] : ['jctMs'],
    );
    experiments.push({ name: `${setting.name}, ${name}`, bounds });
    found.measurements.push(...boundMeasurements(`${setting.name}.${name}`, bounds));
    say(`  ${setting.name}: ${name} done`);
  }
  found.text.push('**What can be gained**', boundsTable(experiments));
  return found;
}

/** Two to sixteen GPUs at high load (FaaShare, figures 13 to 15), with the time of decisions. */
export function scaling({ setting, known, length, seeds, random, say }: Prepared): Findings {
  const found: Findings = { measurements: [], text: [] };
  const rows: string[][] = [];
  for (const gpus of [2, 4, 8, 16]) {
    const rate = steadyRate(setting, known, closed(gpus, paperJobs, length));
    const scenario = open(gpus, length, loads.high, rate);
    const figures = runAll(setting, known, scenario, allPolicies(), seeds);
    for (const name of figures.keys()) {
      rows.push([
        String(gpus),
        `\`${name}\``,
        meanOf(figures, name, 'stp').toFixed(2),
        percent(meanOf(figures, name, 'violations')),
        (meanOf(figures, name, 'p99Ms') / 1000).toFixed(0),
      ]);
    }
    found.measurements.push(figure(`violations${gpus}`, intervalOf(figures, oursName, 'violations', random)));
    say(`  ${gpus} GPUs done`);
  }
  found.text.push(
    '**2 to 16 GPUs, Poisson, high load**',
    markdownTable(['GPUs', 'policy', 'solo over run', 'violations', 'P99, s'], rows),
  );
  return found;
}

/** Orders of the queue at 20 to 100 tasks on four GPUs (FaaShare, figures 2, 18 and 19). */
export function orders({ setting, known, length, seeds, jobs, random }: Prepared): Findings {
  const found: Findings = { measurements: [], text: [] };
  const rows: string[][] = [];
  for (const tasks of [1, 2, 3, 4, 5].map((sixths) => Math.round((sixths * jobs) / 6))) {
    const figures = runAll(setting, known, closed(4, tasks, length), queueOrders(), seeds);
    for (const name of figures.keys()) {
      rows.push([
        String(tasks),
        `\`${name}\``,
        ...(['jctMs', 'makespanMs', 'p99Ms'] as const).map((metric) =>
          (meanOf(figures, name, metric) / 1000).toFixed(0),
        ),
        meanOf(figures, name, 'stp').toFixed(2),
      ]);
    }
    for (const than of ['time-priority', 'memory-priority']) {
      const { interval } = gainOver(figures, oursName, than, 'jctMs', random);
      found.measurements.push(figure(`orders${tasks}.jctGain.${than}`, interval));
    }
  }
  found.text.push(
    '**Orders of the queue, four GPUs, all tasks at the start**',
    markdownTable(['tasks', 'policy', 'JCT, s', 'makespan, s', 'P99, s', 'solo over run'], rows),
  );
  return found;
}

/** FaaShare without the optimiser, the queue or injection; and, apart, the baselines without warm starts. */
export function ablations({ setting, known, length, seeds, random }: Prepared): Findings {
  const scenario = closed(paperGpus, paperJobs, length);
  const warm = runAll(setting, known, scenario, ablatedPolicies(), seeds);
  const cold = runAll(
    setting,
    known,
    closed(paperGpus, paperJobs, length, coldStartMs),
    new Map([['without injection', ours]]),
    seeds,
  );
  const figures: Figures = new Map([...warm, ...cold]);
  const gain = gainOver(figures, oursName, 'without injection', 'jctMs', random);
  return {
    measurements: [
      figure('injectionJctGain', gain.interval),
      figure('optimiserJctGain', gainOver(figures, oursName, 'without the optimiser', 'jctMs', random).interval),
    ],
    text: [
      `**Ablations, ${paperGpus} GPUs, all ${paperJobs} jobs at the start.** Injection alone (${coldStartMs} ms of loading` +
        ` saved): JCT lower by ${intervalText(gain.interval)}.`,
      policyTable(figures),
    ],
  };
}

/** Arrivals other than Poisson's, at medium load. */
export async function traces({ setting, known, length, seeds, random }: Prepared, folder?: string): Promise<Findings> {
  const rate = steadyRate(setting, known, closed(paperGpus, paperJobs, length));
  const arrivals = { poisson, bursty, 'azure-llm': fromTrace(await readAzureConversations(folder)) };
  const found: Findings = { measurements: [], text: [] };
  for (const [name, one] of Object.entries(arrivals)) {
    const figures = runAll(setting, known, open(paperGpus, length, loads.medium, rate, one), allPolicies(), seeds);
    found.measurements.push(figure(`arrivals.${name}.violations`, intervalOf(figures, oursName, 'violations', random)));
    found.text.push(
      ...scenarioText(
        `${paperGpus} GPUs, medium load, arrivals: ${name}`,
        figures,
        oursName,
        gainRows(figures, oursName, ['jctMs', 'p99Ms'], rival, random),
      ),
    );
  }
  return found;
}

/** Time of the policy's decisions on this machine. */
export function overheads({ setting, known: all, length, seeds, jobs }: Prepared): Findings {
  const known = all.map((one) => ({ ...one, predictor: one.forgetful }));
  const first: number[] = [];
  const arrival: number[] = [];
  const total: number[] = [];
  const batch = closed(paperGpus, jobs, length);
  const rate = steadyRate(setting, known, batch);
  for (let seed = 1; seed <= seeds; seed += 1) {
    const decideUs = runSeed(setting, known, batch, ours, seed).run.decideUs;
    first.push(...decideUs.slice(0, 1));
    total.push(decideUs.reduce((sum, us) => sum + us, 0));
    arrival.push(...runSeed(setting, known, arriving(batch, loads.high, rate), ours, seed).run.decideUs);
  }
  const order120Ms = median(first) / 1000;
  const arrivalUs = median(arrival);
  const totalS = median(total) / 1e6;
  return {
    measurements: [
      { name: 'order120Ms', value: order120Ms },
      { name: 'arrivalUs', value: arrivalUs },
      { name: 'decideTotalS', value: totalS },
    ],
    text: [
      `Ordering and placing ${jobs} queued jobs on ${paperGpus} GPUs took ${order120Ms.toFixed(1)} ms, one event` +
        ` of the open scenario ${arrivalUs.toFixed(0)} microseconds, all decisions of the closed batch together` +
        ` ${totalS.toFixed(2)} s (medians; the paper: 0.217 to 0.22 s for the scheduler, or 0.098 to 0.11 s, as it says elsewhere).`,
    ],
  };
}

/** Gains with every invented figure of the workloads 30 % lower and higher. */
export function perturbation(prepared: Prepared, seed: number): Findings {
  const { setting, length, seeds, random } = prepared;
  const rows = [0.7, 1.3].map((factor) => {
    const change = (entries: Setting['catalogue']): Setting['catalogue'] =>
      entries.map((entry) => perturbed(entry, factor, setting.cluster.memoryMiB));
    const changed = setting.withCatalogue(change(setting.strict), change(setting.bestEffort));
    const other = { ...changed, truths: changed.truths.slice(0, seeds) };
    const figures = runAll(other, learn(other, seed), closed(paperGpus, paperJobs, length), allPolicies(), seeds);
    return { factor, gains: gainRows(figures, oursName, ['jctMs', 'makespanMs'], rival, random) };
  });
  return {
    measurements: [],
    text: [
      '**Every invented figure 30 % lower and higher, all jobs at the start**',
      markdownTable(
        ['invented times', `\`${oursName}\``, 'than', 'mean (95 % interval)', 'verdict'],
        rows.flatMap(({ factor, gains }) => gains.map((row) => [String(factor), ...row])),
      ),
    ],
  };
}
