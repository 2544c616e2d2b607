// What is true of a setting, in the form in which policies are given what they measured.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- arrays have an element for each job of a set */
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { CoLocated, SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { FixedShares, QuotaJob, Quotas } from '@gpuwhisk/gpu/share/quotas';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { Profile } from '@gpuwhisk/bench/replay/jobs';
import { featuresOf } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

/** The truth in place of a profile, a predictor and a table of shares. */
export interface Oracle {
  profiles: Map<string, Profile>;
  predictor: SlowdownPredictor;
  quotas: Quotas;
}

/** Tells entries with equal features apart; too little to change a decision. */
const tag = 1e-9;
/** Sets of so many jobs are searched in full; larger ones job by job. */
const mostSearched = 3;
/** Slowdown of sets that the truth does not know, such as three where only pairs were measured. */
const unknownSlowdown = 1000;

/** The oracle of a truth. Shares of a set sum to at most `maxTotal` percent, where that leaves any. */
export function oracleOf(catalogue: readonly CatalogueEntry[], truth: GpuTruth, maxTotal = Infinity): Oracle {
  const profiles = new Map(
    catalogue.map((entry, at): [string, Profile] => {
      const features = featuresOf(entry);
      return [entry.name, { soloFactor: 1, features: { ...features, l2Util: (features.l2Util ?? 0) + tag * at } }];
    }),
  );
  const slowdownsOf = remembered(truth);
  return { profiles, predictor: truePredictor(profiles, slowdownsOf), quotas: trueQuotas(slowdownsOf, maxTotal / 100) };
}

interface Client {
  workload: string;
  share: number;
}

type SlowdownsOf = (clients: readonly Client[]) => readonly number[];

const mostRemembered = 200_000;

function remembered(truth: GpuTruth): SlowdownsOf {
  const known = new Map<string, readonly number[]>();
  return (clients) => {
    const key = clients.map(({ workload, share }) => `${workload} ${share}`).join();
    let slowdowns = known.get(key);
    if (slowdowns === undefined) {
      if (known.size >= mostRemembered) known.clear();
      known.set(key, (slowdowns = ask(truth, clients)));
    }
    return slowdowns;
  };
}

function ask(truth: GpuTruth, clients: readonly Client[]): number[] {
  try {
    return [...truth.slowdowns(clients)];
  } catch (error) {
    if (error instanceof RangeError) return clients.map(() => unknownSlowdown);
    throw error;
  }
}

function truePredictor(profiles: ReadonlyMap<string, Profile>, slowdownsOf: SlowdownsOf): SlowdownPredictor {
  const text = ({ smUtil, dramUtil, l2Util }: CoLocated['features']): string => `${smUtil} ${dramUtil} ${l2Util}`;
  const names = new Map([...profiles].map(([name, { features }]) => [text(features), name]));
  const clientOf = ({ features, share }: CoLocated): Client => {
    const workload = names.get(text(features));
    if (workload === undefined) throw new RangeError(`no workload has the features ${text(features)}`);
    return { workload, share };
  };
  return { slowdown: (one, others) => slowdownsOf([one, ...others].map(clientOf))[0]! };
}

/** A choice of shares with its true slowdowns. */
interface Candidate {
  shares: readonly number[];
  slowdowns: readonly number[];
}

function trueQuotas(slowdownsOf: SlowdownsOf, maxTotal: number): Quotas {
  const measured = (names: readonly string[], shares: readonly number[]): Candidate => ({
    shares,
    slowdowns: slowdownsOf(names.map((workload, at) => ({ workload, share: shares[at]! }))),
  });
  const namesOf = (set: readonly QuotaJob[]): string[] =>
    set.map(({ function: path }) => path.slice(path.lastIndexOf('/') + 1));
  return {
    shareFor(set, _gpu, budgetsMs, fixed = []) {
      const names = namesOf(set);
      const cost = (one: Candidate): number => costOf(set, one, budgetsMs, maxTotal);
      const best =
        set.length <= mostSearched
          ? every(set.length, fixed)
              .map((shares) => measured(names, shares))
              .reduce((a, b) => (cost(b) < cost(a) ? b : a))
          : oneByOne(set.length, fixed, (shares) => measured(names, shares), cost);
      const unmet = set.flatMap((job, at) => (isMet(job, best.slowdowns[at]!, budgetsMs[at]!) ? [] : [at]));
      return { shares: [...best.shares], slowdowns: [...best.slowdowns], source: 'hit', unmet };
    },
    slowdownsAt: (set, _gpu, shares) => [...measured(namesOf(set), shares).slowdowns],
  };
}

function isMet({ soloMs = 0 }: QuotaJob, slowdown: number, budgetMs: number): boolean {
  return soloMs * slowdown <= budgetMs;
}

/** More than any sum of slowdowns. */
const jobMissed = 1e6;
const totalMissed = 1e9;
/** Shares are sums of tenths, which floating point does not hold exactly. */
const rounding = 1e-9;

/** The sum of the slowdowns; a job beyond its budget costs more than that, and shares beyond `maxTotal` more again. */
function costOf(
  set: readonly QuotaJob[],
  { shares, slowdowns }: Candidate,
  budgetsMs: readonly number[],
  maxTotal: number,
): number {
  const total = shares.reduce((sum, share) => sum + share, 0);
  return slowdowns.reduce(
    (sum, slowdown, at) => sum + slowdown + (isMet(set[at]!, slowdown, budgetsMs[at]!) ? 0 : jobMissed),
    total > maxTotal + rounding ? totalMissed : 0,
  );
}

const fractions = shareClasses.map((percent) => percent / 100);

/** All choices of share classes for `jobs` jobs. */
function every(jobs: number, fixed: FixedShares): number[][] {
  let all: number[][] = [[]];
  for (let at = 0; at < jobs; at += 1) {
    const given = fixed[at];
    const own = given === undefined ? fractions : [given];
    all = all.flatMap((shares) => own.map((share) => [...shares, share]));
  }
  return all;
}

/** Changes the share of one job after the other to the best class for it, until none changes. */
function oneByOne(
  jobs: number,
  fixed: FixedShares,
  measured: (shares: readonly number[]) => Candidate,
  cost: (one: Candidate) => number,
): Candidate {
  let best = measured(Array.from({ length: jobs }, (_, at) => fixed[at] ?? 1));
  for (let isChanged = true; isChanged;) {
    isChanged = false;
    for (let at = 0; at < jobs; at += 1) {
      if (fixed[at] !== undefined) continue;
      for (const share of fractions) {
        const other = measured(best.shares.with(at, share));
        if (cost(other) >= cost(best)) continue;
        best = other;
        isChanged = true;
      }
    }
  }
  return best;
}
