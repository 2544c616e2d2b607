// Pairs of functions to measure for the models of degradation, and their measurement (SMORE, thesis 4.3.1, steps 1 to 4).
import { createHash } from 'node:crypto';
import type { Config } from '@gpuwhisk/common/config';
import { isApiError } from '@gpuwhisk/common/errors';
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { mostPairs } from '@gpuwhisk/gpu/predict/pair-samples';
import type { MeasuredSide } from '@gpuwhisk/gpu/predict/pair-samples';
import { leastTrainingPairs } from '@gpuwhisk/gpu/predict/pair-training';
import { recordOf, workloadOf } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { jobId } from '@gpuwhisk/gpu/share/quota-row';
import type { QuotaJob } from '@gpuwhisk/gpu/share/quotas';
import { classAtOrAbove } from '@gpuwhisk/gpu/view/shares';
import type { SampledPlace } from '../scheduler/running-places.js';
import { BoundedCache } from '../../entities/bounded-cache.js';
import { pairFeatures } from '../learning/degradations.js';
import type { KnownFunction } from '../learning/degradations.js';
import type { PerformanceData } from '../learning/performance-data.js';
import type { MeasurementState } from '../learning/measurement-states.js';
import type { MeasurementTarget, Sample, SampleMeasurements, SampleSource } from './sample-runner.js';

/** The kind of job that measures a pair. */
export const pairMeasurementKind = 'pair-measurement';

/** A pair to measure on a GPU. */
export interface PairRequest extends GpuKind {
  key: string;
  gpu: string;
  pair: readonly [KnownFunction, KnownFunction];
}

/** Dependencies of PairMeasurements. */
interface PairMeasurementsParts {
  performanceData: Pick<PerformanceData, 'degradations' | 'pairs' | 'profiles' | 'pairMeasured'>;
  source: Pick<SampleSource, 'of'>;
  measures: Pick<SampleMeasurements, 'soloMs' | 'together'>;
  clock: Clock;
  logger: Logger;
  options: Pick<Config['gpu']['search'], 'pairPart' | 'pairSecondsPerHour'>;
}

/** How long the answer whether a function may be run is cached, ms; for how many functions, and how many are asked for at once. */
const answers = { maxAgeMs: 60_000, maxEntries: 1000 };
const mostLookups = 20;
/** Functions whose pairs are looked at: those that were called last. */
const mostFunctions = 100;
/** A measurement of two functions tells of both as victims. */
const directions = 2;
/** Pairs that are chosen: half of those that are kept is for live runs. */
const mostChosen = mostPairs / directions / 2;
/** How often a pair may fail in a day, and for how many pairs that is known. Most fail as their samples are too short to overlap. */
const mostFailures = 3;
const failures = { maxAgeMs: 24 * 3_600_000, maxEntries: 1000 };
const [hourMs, secondMs] = [3_600_000, 1000];
type Side = Omit<MeasuredSide, 'features'>;

/** A function that may be run, and the memory that its sample needs. */
interface Allowed {
  known: KnownFunction;
  memoryMiB: number;
}

/**
 * Chooses pairs of the functions that were called and allow it: at least `pairPart` of them, in an order that depends on their
 * names only, and as many as a model takes. A workload is nothing that the platform could repeat, so that pairs with one
 * are measured as they happen.
 */
export class PairMeasurements {
  /** By function: the memory that its sample needs, MiB, or why it must not be run. */
  private readonly answers: BoundedCache<number | string>;
  /** By key of a pair, how often its measurement has failed. */
  private readonly failures: BoundedCache<number>;
  /** Measurements of the last hour: when they ended, monotonic ms, and how long they took. */
  private spent: { endedMs: number; tookMs: number }[] = [];
  /** By kind of GPU, the pairs of a list of functions: they are chosen again when the list is another. */
  private readonly chosen = new Map<string, { of: string; pairs: readonly ChosenPair[] }>();
  private state: Omit<MeasurementState, 'spentS' | 'budgetS'> = { functions: 0, problems: [], chosen: 0, measured: 0 };

  constructor(private readonly parts: PairMeasurementsParts) {
    this.answers = new BoundedCache(parts.clock, answers);
    this.failures = new BoundedCache(parts.clock, failures);
  }

  /**
   * The next pair to measure on one of these idle GPUs; undefined if there is none, or the hour's time is spent. `hasFailed`:
   * whether a pair, by its key, has failed lately. Rejects if the store fails.
   */
  async next(places: readonly SampledPlace[], hasFailed: (key: string) => boolean): Promise<PairRequest | undefined> {
    const shared = places.filter(({ mode }) => mode === 'mps' || mode === 'timeslice');
    const kinds = new Map(shared.map((gpu) => [kindName(gpu), gpu]));
    const { pairSecondsPerHour } = this.parts.options;
    if (kinds.size === 0 || pairSecondsPerHour === 0) return undefined;
    const allowed = await this.allowed();
    const isSpent = this.spentMs >= pairSecondsPerHour * secondMs;
    let next: PairRequest | undefined;
    const counts = { chosen: 0, measured: 0 };
    for (const [name, kind] of kinds) {
      const chosen = this.chosenOf(allowed, name);
      const missing = chosen.filter(({ pair }) => !this.isMeasured(pair, kind));
      counts.chosen += chosen.length;
      counts.measured += chosen.length - missing.length;
      const alike = shared.filter((gpu) => kindName(gpu) === name);
      if (!isSpent) next ??= this.firstOf(missing, alike, hasFailed);
    }
    this.state = { ...this.state, ...counts };
    return next;
  }

  /**
   * Measures both functions alone and together. Returns whether it did: a function that was changed or deleted meanwhile must
   * not be run. Rejects as `SampleMeasurements` does.
   */
  async measure({ key: name, pair, gpuType, mode }: PairRequest, on: MeasurementTarget): Promise<boolean> {
    const { performanceData, source, measures, clock, logger } = this.parts;
    const startedMs = clock.monotonicMs();
    try {
      const samples: Sample[] = [];
      const sides: MeasuredSide[] = [];
      for (const known of pair) {
        const sample = await source.of(jobOf(known));
        if (typeof sample === 'string') {
          this.answers.drop(jobId(jobOf(known)));
          logger.info({ function: known.function, reason: sample }, 'the measurement of a pair was cancelled');
          return false;
        }
        samples.push(sample);
        const soloMs = await measures.soloMs(sample, on);
        const side = this.sideOf(known, on);
        const record = this.recordOf(known, on);
        sides.push({ ...side, features: pairFeatures(record, { ...known, soloMs, share: side.share }) });
      }
      const jobs = pair.map((known) => {
        const own = workloadOf(this.recordOf(known, on));
        return { ...jobOf(known), ...(own && { features: own }) };
      });
      const shares = sides.map(({ share }) => Math.round(share * 100));
      const slowdowns = await measures.together(jobs, samples, shares, on);
      const key = { gpuType, mode, victim: 'function', neighbour: 'function' } as const;
      slowdowns.forEach((slowdown, at) => {
        const [victim, neighbour] = [sides[at], sides[1 - at]];
        if (victim === undefined || neighbour === undefined) return;
        performanceData.pairMeasured(key, { victim, neighbour, degradation: slowdown - 1, from: 'sample' });
      });
      // It would be measured again at once.
      if (!this.isMeasured(pair, on)) throw new Error('the measured degradations were refused');
      return true;
    } catch (error) {
      const isUnavailable = on.signal.aborted || (isApiError(error) && error.status === 503);
      if (!isUnavailable) this.failures.set(name, (this.failures.get(name) ?? 0) + 1);
      throw error;
    } finally {
      const endedMs = clock.monotonicMs();
      this.spent.push({ endedMs, tookMs: endedMs - startedMs });
    }
  }

  /** The state of the measurement, as of the last look. */
  view(): MeasurementState {
    const { pairSecondsPerHour: budgetS } = this.parts.options;
    return { ...this.state, spentS: this.spentMs / secondMs, budgetS };
  }

  private get spentMs(): number {
    const fromMs = this.parts.clock.monotonicMs() - hourMs;
    this.spent = this.spent.filter(({ endedMs }) => endedMs > fromMs);
    return this.spent.reduce((sum, { tookMs }) => sum + tookMs, 0);
  }

  /** Functions that were called and may be run. Those that are not known yet are asked for at later looks. */
  private async allowed(): Promise<Allowed[]> {
    const { performanceData, source } = this.parts;
    const called = new Map(
      Array.from(performanceData.degradations.functions(), (known) => [known.function, known] as const),
    );
    const allowed: Allowed[] = [];
    const problems: MeasurementState['problems'] = [];
    let lookups = 0;
    for (const known of [...called.values()].slice(-mostFunctions)) {
      const id = jobId(jobOf(known));
      if (this.answers.get(id) === undefined && (lookups += 1) > mostLookups) continue;
      const answer = await this.answers.resolve(id, async () => {
        const sample = await source.of(jobOf(known));
        return typeof sample === 'string' ? sample : sample.memoryMiB;
      });
      if (typeof answer === 'string') problems.push({ function: known.function, problem: answer });
      else allowed.push({ known, memoryMiB: answer });
    }
    this.state = { ...this.state, functions: allowed.length, problems };
    return allowed;
  }

  /** The first pair that fits one of these GPUs of one kind, those that have failed last. */
  private firstOf(
    missing: readonly ChosenPair[],
    gpus: readonly SampledPlace[],
    hasFailed: (key: string) => boolean,
  ): PairRequest | undefined {
    let first: PairRequest | undefined;
    let least = mostFailures;
    for (const { pair, memoryMiB } of missing) {
      const gpu = gpus.find((one) => one.memoryMiB >= memoryMiB);
      if (gpu === undefined) continue;
      const { id, gpuType, mode } = gpu;
      const key = `${kindName(gpu)} ${pair.map(jobOf).map(jobId).join(' ')}`;
      const failed = this.failures.get(key) ?? 0;
      if (failed >= least || hasFailed(key)) continue;
      least = failed;
      first = { key, gpu: id, gpuType, mode, pair };
      if (failed === 0) break;
    }
    return first;
  }

  private chosenOf(allowed: readonly Allowed[], place: string): readonly ChosenPair[] {
    const of = JSON.stringify(
      allowed.map(({ known, memoryMiB }) => [jobId(jobOf(known)), memoryMiB, known.maxShareClass]).sort(),
    );
    const before = this.chosen.get(place);
    if (before?.of === of) return before.pairs;
    const pairs = chosenPairs(allowed, place, this.parts.options.pairPart);
    this.chosen.set(place, { of, pairs });
    return pairs;
  }

  private isMeasured([one, other]: PairRequest['pair'], gpu: GpuKind): boolean {
    const { pairs } = this.parts.performanceData;
    const { gpuType, mode } = gpu;
    const key = { gpuType, mode, victim: 'function', neighbour: 'function' } as const;
    const sides = [one, other].map((known) => this.sideOf(known, gpu)) as [Side, Side];
    return pairs.has(key, ...sides) && pairs.has(key, sides[1], sides[0]);
  }

  /** A function at the share that the policy gives it, which is the class that it fills. */
  private sideOf(known: KnownFunction, gpu: GpuKind): Side {
    const { function: name, version, maxShareClass = 100 } = known;
    const { smUtil = 1 } = workloadOf(this.recordOf(known, gpu)) ?? {};
    return { name, version, share: Math.min(maxShareClass, classAtOrAbove(smUtil)) / 100 };
  }

  private recordOf({ function: name, version, declared }: KnownFunction, gpu: GpuKind): FeatureRecord | undefined {
    const profiles = this.parts.performanceData.profiles.ofFunction(name);
    const own = profiles.find((one) => kindName(one) === kindName(gpu) && one.version === version);
    return recordOf(own?.features, declared);
  }
}

/** A pair to measure, and the memory that both need. */
interface ChosenPair {
  pair: readonly [KnownFunction, KnownFunction];
  memoryMiB: number;
}

/**
 * `part` of the pairs of these functions, and at least as many as a model takes. Digests order the pairs, so that a new function
 * adds pairs and leaves the order of the others. A function beside itself is left to live runs: an invoker may have one warm
 * instance run both samples in turn.
 */
export function chosenPairs(functions: readonly Allowed[], place: string, part: number): ChosenPair[] {
  const all = functions.flatMap((one, at) =>
    functions.slice(at + 1).map((other) => {
      const pair = [one.known, other.known].sort(byId) as [KnownFunction, KnownFunction];
      const digest = createHash('sha256')
        .update([place, ...pair.map(jobOf).map(jobId)].join(' '))
        .digest('hex');
      return { digest, pair, memoryMiB: one.memoryMiB + other.memoryMiB };
    }),
  );
  all.sort((one, other) => (one.digest < other.digest ? -1 : 1));
  const least = part === 0 ? 0 : Math.ceil(leastTrainingPairs / directions);
  const wanted = Math.min(Math.max(Math.ceil(part * all.length), least), mostChosen);
  return all.slice(0, wanted).map(({ pair, memoryMiB }) => ({ pair, memoryMiB }));
}

const byId = (one: KnownFunction, other: KnownFunction): number => (jobId(jobOf(one)) < jobId(jobOf(other)) ? -1 : 1);

const jobOf = ({ function: name, version, batch }: KnownFunction): QuotaJob => ({ function: name, version, batch });
