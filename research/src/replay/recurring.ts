// Functions that recur as they do in production, tables that learn from a replay's runs, and shares chosen by the truth.
import { shareClasses } from '@gpuwhisk/common/gpu';
import { seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { steadyNeighbours } from '@gpuwhisk/gpu/stages/profile/run-log';
import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import { jobOf } from '@gpuwhisk/gpu/share/quotas';
import type { QuotaChoice, QuotaJob, Quotas } from '@gpuwhisk/gpu/share/quotas';
import { SetDemands } from '@gpuwhisk/gpu/share/set-demands';
import type { WantedSet } from '@gpuwhisk/gpu/share/set-demands';
import { SetObservations } from '@gpuwhisk/gpu/share/set-observations';
import type { SetMember } from '@gpuwhisk/gpu/share/set-observations';
import type { GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import { drawEntry, functionPrefix, type Popularity } from '@gpuwhisk/bench/replay/jobs';
import { driverMajor, offlineQuotas, search } from './profiling.js';
import type { Known, Setting } from './setting.js';
import { featuresOf } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';

/**
 * The same data where workloads recur with drawn popularity. Half of the members of searched sets are strict workloads, as
 * in a mix of jobs, so that the sets that are met most are searched most.
 */
export function withPopularity(
  setting: Setting,
  known: readonly Known[],
  popularity: Popularity,
  seed: number,
): Known[] {
  const { catalogue, cluster, quotaBudget, strict, bestEffort } = setting;
  return known.map((one, draw) => {
    const random = seededRandom(seed * 7919 + draw);
    const weights = new Map(catalogue.map(({ name }) => [name, popularity(random)]));
    const truth = setting.truths[draw] as GpuTruth;
    const quotas = offlineQuotas(catalogue, truth, one.profiles, one.predictor, cluster.type, quotaBudget, random, {
      draw: () => drawEntry(random.uint32() % 2 === 0 ? strict : bestEffort, weights, random),
    });
    return { ...one, quotas, popularity: weights };
  });
}

/** How often a set is asked for before its shares are searched: the default of `gpu.search.minAsked`. */
const leastAsked = 3;

/** Dependencies of a LearningTable. */
interface LearningParts {
  known: Pick<Known, 'predictor' | 'quotas'>;
  /** A search measures by it. */
  truth: GpuTruth;
  catalogue: readonly CatalogueEntry[];
  random: Random;
}

/**
 * A copy of a table that learns during a replay as the platform's does: from runs whose neighbours stayed the same for nine
 * tenths of the time, and from a search for each set that is met three times. Searches take no time of the replay's GPUs: live
 * they run on idle ones, and give way to work.
 */
export class LearningTable implements Quotas {
  private readonly table: QuotaTable;
  private readonly sets = new SetObservations();
  private readonly demands = new SetDemands();
  private readonly entries: ReadonlyMap<string, CatalogueEntry>;

  constructor(private readonly parts: LearningParts) {
    const { known, catalogue } = parts;
    this.table = new QuotaTable({ predictorOf: () => known.predictor });
    for (const row of known.quotas.rows()) this.table.restore(structuredClone(row));
    this.entries = new Map(catalogue.map((entry) => [functionPrefix + entry.name, entry]));
  }

  /** The answer that is known now; what a search finds serves the next time. */
  shareFor(...asked: Parameters<Quotas['shareFor']>): QuotaChoice {
    const [set, gpu, budgetsMs] = asked;
    const choice = this.table.shareFor(...asked);
    if (set.length > 1 && this.table.wantsSearch(set, gpu)) {
      this.demands.asked(set, gpu, budgetsMs);
      for (const wanted of this.demands.list()) if (wanted.asked >= leastAsked) this.search(wanted);
    }
    return choice;
  }

  slowdownsAt(...asked: Parameters<Quotas['slowdownsAt']>): number[] | undefined {
    return this.table.slowdownsAt(...asked);
  }

  private search(wanted: WantedSet): void {
    const { key, set } = wanted;
    this.demands.forget(key);
    const entries: CatalogueEntry[] = [];
    const features: WorkloadFeatures[] = [];
    for (const { function: name, features: profiled } of set) {
      const entry = this.entries.get(name);
      if (entry === undefined) continue;
      entries.push(entry);
      features.push(profiled ?? featuresOf(entry));
    }
    for (const point of search(entries, features, this.parts.truth, this.parts.random)) {
      this.table.record(set, wanted, point, driverMajor);
    }
    this.table.markSearched(set, wanted);
  }

  /** Records the set of a run once each of its members has been measured. */
  ran(run: ObservedRun): void {
    const { task, gpu, ranMs } = run;
    const neighbours = steadyNeighbours(run);
    if (neighbours === undefined || neighbours.length === 0 || task.soloMs === undefined) return;
    const members = [run, ...neighbours].map((one): SetMember => ({ job: jobOf(one.task), share: one.share * 100 }));
    const measured = this.sets.add(gpu, members, ranMs / task.soloMs);
    if (measured !== undefined) this.table.record(measured.set, gpu, measured.point, driverMajor);
  }
}

/**
 * A quota stage that knows the truth of every set: a bound on what any table can gain. It chooses the classes that end the
 * set's jobs soonest on average, where jobs that have ended disturb no more; with shares of as many jobs as `mostOpen`.
 */
export function soonestQuotas(truth: GpuTruth, mostOpen = 3): Quotas {
  const slowdownsOf = (set: readonly QuotaJob[], shares: readonly number[]): number[] => [
    ...truth.slowdowns(set.map(({ function: name }, at) => ({ workload: workloadOf(name), share: shares[at] ?? 1 }))),
  ];
  return {
    shareFor(set, _gpu, budgetsMs, fixed = [], leftMs = []) {
      const open = [...set.keys()].filter((at) => fixed[at] === undefined);
      const none = { shares: set.map((_, at) => fixed[at] ?? 1), source: 'guardrail' as const, unmet: [] };
      if (open.length > mostOpen) return none;
      let best: { shares: number[]; slowdowns: number[]; ms: number } | undefined;
      for (const classes of products(open.length)) {
        const shares = set.map((_, at) => fixed[at] ?? (classes[open.indexOf(at)] ?? 100) / 100);
        const slowdowns = slowdownsOf(set, shares);
        if (set.some(({ soloMs = 1 }, at) => (slowdowns[at] ?? 1) * soloMs > (budgetsMs[at] ?? Infinity))) continue;
        const ms = completionMs(set, shares, leftMs, slowdownsOf);
        if (best === undefined || ms < best.ms) best = { shares, slowdowns, ms };
      }
      return best === undefined ? none : { ...best, source: 'hit', unmet: [] };
    },
    slowdownsAt: (set, _gpu, shares) => slowdownsOf(set, shares),
  };
}

/** The same data, with the shares that are best by the truth in place of the table's: a bound on what a table can gain. */
export function withTrueShares(setting: Setting, known: readonly Known[]): Known[] {
  return known.map((one, draw) => ({ ...one, shares: soonestQuotas(setting.truths[draw] as GpuTruth) }));
}

/** The workload of a function of a replay. */
function workloadOf(name: string): string {
  return name.slice(functionPrefix.length);
}

/** All choices of a share class for each of so many jobs. */
function products(jobs: number): number[][] {
  if (jobs === 0) return [[]];
  return products(jobs - 1).flatMap((one) => shareClasses.map((share) => [...one, share]));
}

/** The sum of the times to the ends of jobs that run together until each has ended, ms. */
function completionMs(
  set: readonly QuotaJob[],
  shares: readonly number[],
  leftMs: readonly number[],
  slowdownsOf: (set: readonly QuotaJob[], shares: readonly number[]) => number[],
): number {
  let there = set.map((job, at) => ({ job, share: shares[at] ?? 1, leftMs: leftMs[at] ?? job.soloMs ?? 1 }));
  let sumMs = 0;
  while (there.length > 0) {
    const slowdowns = slowdownsOf(
      there.map(({ job }) => job),
      there.map(({ share }) => share),
    );
    const stepMs = Math.min(...there.map((one, at) => one.leftMs * (slowdowns[at] ?? 1)));
    sumMs += stepMs * there.length;
    there = there
      .map((one, at) => ({ ...one, leftMs: one.leftMs - stepMs / (slowdowns[at] ?? 1) }))
      .filter((one) => one.leftMs > 1e-9 * stepMs);
  }
  return sumMs;
}
