import { randomFraction, shuffled, type Random } from '@gpuwhisk/common/system/random';
import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import { readTable } from '../data/csv.js';
import { randomItem } from '../statistics.js';
import type { CatalogueEntry } from './workloads/catalogue.js';

/** A replayed function's name is this, then its workload's. */
export const functionPrefix = '/guest/';

/** A policy's data of a workload, from its solo runs. */
export interface Profile {
  /** Measured over true solo time. */
  soloFactor: number;
  features: WorkloadFeatures;
}

/** Parameters of a draw of jobs. */
export interface JobMix {
  /** Half of the jobs are drawn from these and have an SLO. */
  strict: readonly CatalogueEntry[];
  /** The other half is drawn from these. */
  bestEffort: readonly CatalogueEntry[];
  /** SLO over solo time: one factor, or the bounds of a factor drawn for each job independently of its length. */
  sloFactor: number | readonly [least: number, greatest: number];
  /** Batches or iterations of a job: the one factor that stretches all of them. */
  length: number;
  /** Draws the solo time of a job, ms, in place of `length`; rounded to whole batches, at least one. */
  soloMs?: (random: Random) => number;
  /** Time of an injection or a cold start, ms. */
  startMs: number;
  /** Weight of each workload by name, for draws; absent: all are as likely. */
  popularity?: ReadonlyMap<string, number>;
  /** Overrides the memory of each task; for truths that know pairs only. */
  memoryMiB?: number;
}

/** A job for each of `arrivedAt`, in random order, half of them with an SLO. */
export function drawJobs(
  mix: JobMix,
  arrivedAt: readonly number[],
  profiles: ReadonlyMap<string, Profile>,
  random: Random,
): ReplayJob[] {
  const isStrict = shuffled(
    arrivedAt.map((_, i) => i % 2 === 0),
    random,
  );
  return arrivedAt.map((at, i): ReplayJob => {
    const from = isStrict[i] ? mix.strict : mix.bestEffort;
    const entry = drawEntry(from, mix.popularity, random);
    const profile = profiles.get(entry.name);
    if (!profile) throw new RangeError(`'${entry.name}' has no profile`);
    const units = mix.soloMs === undefined ? mix.length : Math.max(1, Math.round(mix.soloMs(random) / entry.unitMs));
    const soloMs = entry.unitMs * units;
    const factor = typeof mix.sloFactor === 'number' ? mix.sloFactor : between(mix.sloFactor, random);
    return {
      workload: entry.name,
      soloMs,
      startMs: mix.startMs,
      task: {
        id: `job${i}`,
        function: `${functionPrefix}${entry.name}`,
        version: '0.0.1',
        namespace: 'guest',
        batch: entry.batch,
        gpus: 1,
        memoryMiB: mix.memoryMiB ?? entry.memoryMiB,
        soloMs: soloMs * profile.soloFactor,
        startMs: mix.startMs,
        features: profile.features,
        arrivedAt: at,
        ...(isStrict[i] && { sloMs: soloMs * factor }),
        class: entry.class,
      },
    };
  });
}

/** One of `entries`, which is not empty, by their weights; all are as likely if there are none. */
export function drawEntry(
  entries: readonly CatalogueEntry[],
  weights: ReadonlyMap<string, number> | undefined,
  random: Random,
): CatalogueEntry {
  if (weights === undefined) return randomItem(entries, random);
  const weightOf = ({ name }: CatalogueEntry): number => weights.get(name) ?? 0;
  let left = randomFraction(random) * entries.reduce((sum, entry) => sum + weightOf(entry), 0);
  const drawn = entries.find((entry) => (left -= weightOf(entry)) < 0) ?? entries.at(-1);
  if (drawn === undefined) throw new RangeError('there is no workload to draw');
  return drawn;
}

function between([least, greatest]: readonly [number, number], random: Random): number {
  return least + (greatest - least) * randomFraction(random);
}

/** Draws `count` rising arrival times from 0 on, with a mean distance of 1. */
export type Arrivals = (count: number, random: Random) => number[];

const exponential = (random: Random): number => -Math.log(1 - randomFraction(random));

/** A Poisson process. */
export const poisson: Arrivals = (count, random) => {
  let at = 0;
  return Array.from({ length: count }, () => (at += exponential(random)));
};

/** Rate in a burst over the rate between bursts; both phases have equally many arrivals on average. */
const burstFactor = 9;
const arrivalsOfAPhase = 10;

/** A Poisson process whose rate changes between two levels (a Markov-modulated one). */
export const bursty: Arrivals = (count, random) => {
  let at = 0;
  let isBurst = randomFraction(random) < 0.5;
  // Phases have equally many arrivals, so the mean distance is the mean of both levels'.
  const slow = (2 * burstFactor) / (1 + burstFactor);
  return Array.from({ length: count }, () => {
    if (randomFraction(random) < 1 / arrivalsOfAPhase) isBurst = !isBurst;
    return (at += exponential(random) * (isBurst ? slow / burstFactor : slow));
  });
};

/** A piece of a measured trace that starts at a random place, stretched to a mean distance of 1. */
export function fromTrace(times: readonly number[]): Arrivals {
  return (count, random) => {
    if (times.length <= count) throw new RangeError(`the trace has ${times.length} arrivals, not more than ${count}`);
    const first = Math.floor(randomFraction(random) * (times.length - count));
    const piece = times.slice(first, first + count + 1);
    const start = piece[0] as number;
    const mean = ((piece.at(-1) as number) - start) / count;
    if (!(mean > 0)) throw new RangeError('a piece of the trace has no duration');
    return piece.slice(1).map((time) => (time - start) / mean);
  };
}

/** Times of the conversations in Azure's LLM trace of 2023. */
export async function readAzureConversations(folder?: string): Promise<number[]> {
  const rows = await readTable('traces/azure_llm2023_conv.csv', { t_s: 'number' }, folder);
  return rows.map((row) => row.t_s);
}

/** Draws the weight of a function. */
export type Popularity = (random: Random) => number;

/** Draws numbers of invocations of one day: of any of Azure's functions (day 7, 2019), each as likely. */
export async function readAzurePopularity(folder?: string): Promise<Popularity> {
  const rows = await readTable('traces/azure2019_functions_day7.csv', { invocations: 'number' }, folder);
  return (random) => randomItem(rows, random).invocations;
}

/** Draws from `draw` until a value lies between `least` and `greatest`. Throws RangeError if none of 10,000 does. */
export function within(draw: (random: Random) => number, least: number, greatest: number): (random: Random) => number {
  return (random) => {
    for (let i = 0; i < 10_000; i += 1) {
      const value = draw(random);
      if (value >= least && value <= greatest) return value;
    }
    throw new RangeError(`no value between ${least} and ${greatest} was drawn`);
  };
}

/** Draws times alone of serverless functions, ms: Azure's mean durations of day 7 (2019), as often as each was invoked. */
export async function readAzureDurations(folder?: string): Promise<(random: Random) => number> {
  const columns = { avg_duration_ms: 'number', invocations: 'number' } as const;
  const rows = await readTable('traces/azure2019_functions_day7.csv', columns, folder);
  let total = 0;
  const upTo = rows.map(({ invocations }) => (total += invocations));
  return (random) => {
    const at = randomFraction(random) * total;
    let [low, high] = [0, upTo.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((upTo[middle] as number) > at) high = middle;
      else low = middle + 1;
    }
    return (rows[low] as (typeof rows)[number]).avg_duration_ms;
  };
}
