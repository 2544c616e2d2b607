// Samples of functions: running them on a GPU, and measuring them alone and together.
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { isApiError } from '@gpuwhisk/common/errors';
import type { GpuAnnotation, GpuKind, ShareClass } from '@gpuwhisk/common/gpu';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { QuotaJob } from '@gpuwhisk/gpu/share/quotas';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { isTelling, steadyRuns, typicalMs } from '@gpuwhisk/gpu/share/set-observations';
import type { RunInterval } from '@gpuwhisk/gpu/share/set-observations';
import { kindName, shareClasses } from '@gpuwhisk/common/gpu';
import type { Allotment } from '@gpuwhisk/gpu/share/quota-search';
import { jobId } from '@gpuwhisk/gpu/share/quota-row';
import type { ActionResolver } from '../../actions/action-resolver.js';
import type { Identities } from '../../authentication/authentication.js';
import { parseActionName } from '../../entities/action-name.js';
import type { InvokeService } from '../../invoke/invoke-service.js';
import { BoundedCache } from '../../entities/bounded-cache.js';
import type { PerformanceData } from '../learning/performance-data.js';

/** A call that may be repeated any number of times to measure a function. */
export interface Sample {
  job: QuotaJob;
  /** The function's owner, as which the sample runs. */
  identity: Identity;
  /** The function, or the action that its annotation names instead. */
  action: WhiskAction;
  payload: JsonObject;
  memoryMiB: number;
}

/** Finds the samples that functions' owners allow to be run. */
export class SampleSource {
  constructor(
    private readonly identities: Pick<Identities, 'ofNamespace'>,
    private readonly resolver: Pick<ActionResolver, 'resolve'>,
  ) {}

  /**
   * The sample of a function, or the reason why it must not run. `inBatches`: a function whose requests run in batches may
   * be run, too. Rejects if the store fails.
   */
  async of(job: QuotaJob, inBatches = false): Promise<Sample | string> {
    try {
      return await this.find(job, inBatches);
    } catch (error) {
      // The action or its package is deleted; other errors are left to the next attempt.
      if (isApiError(error) && error.status < 500) return 'the action does not exist';
      throw error;
    }
  }

  private async find(job: QuotaJob, inBatches: boolean): Promise<Sample | string> {
    const namespace = parseActionName(job.function)?.namespace ?? '';
    const identity = await this.identities.ofNamespace(namespace);
    const own = await this.resolve(identity, job.function);
    if (own.version !== job.version) return `the action now has version ${own.version}`;
    const need = needOf(own);
    const problem = problemOf(own, need, inBatches);
    if (problem !== undefined || need === undefined) return problem ?? 'the action needs no GPU';
    const { sample } = need;
    if (sample === undefined) return 'the action has no sample';
    if (typeof sample !== 'string') {
      return { job, identity, action: own, payload: sample as JsonObject, memoryMiB: need.memoryMiB };
    }
    const action = await this.resolve(identity, sample.startsWith('/') ? sample : `/${namespace}/${sample}`);
    const needed = needOf(action);
    const itsProblem = problemOf(action, needed, inBatches);
    if (itsProblem !== undefined || needed === undefined) return `of its sample ${sample}: ${itsProblem}`;
    return { job, identity, action, payload: {}, memoryMiB: needed.memoryMiB };
  }

  private async resolve(identity: Identity, fullName: string): Promise<WhiskAction> {
    const name = parseActionName(fullName);
    if (name === undefined) throw new Error(`${fullName} is no action's name`);
    return (await this.resolver.resolve(identity, name)).action;
  }
}

function needOf({ annotations }: WhiskAction): GpuAnnotation | undefined {
  const value = parameterValue(annotations, 'gpu');
  return value === undefined ? undefined : readGpuAnnotation(value);
}

/** The reason why an action must not be run to find its share; undefined if it may. */
function problemOf(
  { annotations }: WhiskAction,
  need: GpuAnnotation | undefined,
  inBatches: boolean,
): string | undefined {
  if (need === undefined) return 'the action needs no GPU';
  if (parameterValue(annotations, 'idempotent') !== true) return 'the action is not idempotent';
  if (need.mpsPercent !== undefined || need.smLimit !== undefined) return 'the owner has fixed the share';
  if (need.batch > 1 && !inBatches) return 'requests of the action run in batches';
  return need.gpus > 1 ? 'the action needs several GPUs' : undefined;
}

/** A sample and its share class. */
export interface SharedSample {
  sample: Sample;
  shareClass: ShareClass;
}

/** Dependencies of SampleRunner. */
interface SampleRunnerParts {
  invoker: InvokeService;
  clock: Clock;
  /** Longest run of a sample, ms. */
  maxSampleMs: number;
}

interface SampleEnd extends RunInterval {
  isWarm: boolean;
  /** Whether the run was ended because it took too long. */
  isOverlong: boolean;
}

/** A member of a measured set, and its runs. */
interface MemberRuns {
  member: SharedSample;
  /** Time of the member's sample alone, ms. */
  soloMs: number;
  /** The run that starts its instance. */
  first: SampleEnd;
  /** Later warm runs, and runs that were too long. */
  runs: SampleEnd[];
}

/** Longest time of a cold start and a run, ms. */
const invokeMs = 120_000;
/** Longest time of one measurement, ms, and its most runs. */
const measureMs = 60_000;
const maxRuns = 200;
/** Most characters of a sample's own error in the reason of its failure. */
const maxReason = 200;

/** Runs samples on a GPU in the way of requests, and measures their times. */
export class SampleRunner {
  constructor(private readonly parts: SampleRunnerParts) {}

  /**
   * The time of a batch of a sample, of its job's size, on an idle GPU with a share, ms; Infinity if the batch is too long.
   * Rejects if the sample fails, and when aborted.
   */
  async alone({ sample, shareClass }: SharedSample, gpu: string, signal: AbortSignal): Promise<number> {
    const runs: SampleEnd[] = [];
    for (let count = 0; count < maxRuns && !isTelling(runs); count += 1) {
      const run = await this.run({ sample, shareClass }, gpu, signal);
      if (run.isOverlong) return Infinity;
      if (run.isWarm) runs.push(run);
    }
    if (!isTelling(runs)) throw new Error(`no instance of ${sample.job.function} stays warm`);
    const ms = typicalMs(runs);
    if (ms <= 0) throw new Error(`the sample of ${sample.job.function} takes less than a millisecond`);
    return ms;
  }

  /**
   * Each member's slowdown against `soloMs` while the others run repeatedly beside it. For a member that takes too long the
   * result is a lower bound. Rejects as `alone` does, and if runs are too short to overlap.
   */
  async together(
    members: readonly SharedSample[],
    soloMs: readonly number[],
    gpu: string,
    signal: AbortSignal,
  ): Promise<number[]> {
    // Every member gets its instance before the measurement starts.
    const all = await Promise.all(
      members.map(async (member, at): Promise<MemberRuns> => {
        const first = await this.run(member, gpu, signal);
        return { member, soloMs: ofMember(soloMs, at), first, runs: [] };
      }),
    );
    const runs = all.map((one) => one.runs);
    let isOver = all.some(({ first }) => first.isOverlong);
    const untilMs = this.parts.clock.monotonicMs() + measureMs;
    const isMeasured = (): boolean => steadyRuns(runs).every(isTelling);
    await Promise.all(
      all.map(async ({ member, runs: own }) => {
        try {
          while (!isOver) {
            const run = await this.run(member, gpu, signal);
            if (run.isWarm || run.isOverlong) own.push(run);
            isOver ||= run.isOverlong || isMeasured();
            isOver ||= own.length >= maxRuns || this.parts.clock.monotonicMs() >= untilMs;
          }
        } finally {
          isOver = true;
        }
      }),
    );
    const { maxSampleMs } = this.parts;
    const isOverlong = ({ first, runs: own }: MemberRuns): boolean => [first, ...own].some((run) => run.isOverlong);
    if (all.some(isOverlong)) {
      return all.map((one) => {
        const ms = isOverlong(one) ? maxSampleMs : typicalMs([one.first, ...one.runs]);
        return Math.max(1, ms / one.soloMs);
      });
    }
    if (!isMeasured())
      throw new Error('the samples are too short or differ too much in length to be measured together');
    const steady = steadyRuns(runs);
    return all.map((one, at) => typicalMs(ofMember(steady, at)) / one.soloMs);
  }

  private async run({ sample, shareClass }: SharedSample, gpu: string, signal: AbortSignal): Promise<SampleEnd> {
    const { identity, action, payload, job } = sample;
    const { invoker, maxSampleMs: maxMs } = this.parts;
    const transactionId = 'sid_quotaSearch';
    const outcome = await unlessAborted(signal, () =>
      invoker.invoke({
        identity,
        action,
        payload,
        blocking: true,
        waitMs: invokeMs,
        transactionId,
        sample: { gpu, shareClass, maxMs, ...(job.batch > 1 && { batch: job.batch }) },
      }),
    );
    if (outcome.type !== 'completed')
      throw new Error(`the sample of ${job.function} did not end within ${invokeMs} ms`);
    return endOf(outcome.activation, job.function);
  }
}

function endOf({ annotations, response, start, end = start, ...activation }: WhiskActivation, name: string): SampleEnd {
  const isOverlong = parameterValue(annotations, 'timeout') === true;
  if (response.statusCode !== ActivationStatus.success && !isOverlong) {
    const { result } = response;
    const told =
      isJsonObject(result) && typeof result.error === 'string' ? `: ${result.error.slice(0, maxReason)}` : '';
    throw new Error(`the sample of ${name} failed in activation ${activation.activationId}${told}`);
  }
  const initMs = parameterValue(annotations, 'initTime');
  const loadMs = typeof initMs === 'number' ? initMs : 0;
  return { startMs: start + loadMs, endMs: end, isWarm: initMs === undefined, isOverlong };
}

/** The value of the member at `index`. Throws RangeError if the list is shorter than the set. */
function ofMember<Value>(values: readonly Value[], index: number): Value {
  const value = values[index];
  if (value === undefined) throw new RangeError(`a list of ${values.length} values has none for member ${index}`);
  return value;
}

/** Does `work` unless `signal` is aborted. An abort during the work rejects with the signal's reason at once. */
export function unlessAborted<Value>(signal: AbortSignal, work: () => Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason as Error);
    if (signal.aborted) {
      stop();
      return;
    }
    signal.addEventListener('abort', stop, { once: true });
    const settled = (): void => signal.removeEventListener('abort', stop);
    work().then(
      (value) => {
        settled();
        resolve(value);
      },
      (error: unknown) => {
        settled();
        reject(error as Error);
      },
    );
  });
}

/** Dependencies of SampleMeasurements. */
interface SampleMeasurementsParts {
  performanceData: Pick<PerformanceData, 'runs' | 'curves' | 'driverOf' | 'metrics'>;
  runner: Pick<SampleRunner, 'alone' | 'together'>;
  clock: Clock;
  /** Longest run of a sample, ms. */
  maxSampleMs: number;
}

/** A GPU to measure on, and the signal that ends the measurement. */
export interface MeasurementTarget extends GpuKind {
  gpu: string;
  signal: AbortSignal;
}

/** Bounds of the cached times alone. After the age a new measurement detects changes that have no version. */
const aloneBounds = { maxAgeMs: 3_600_000, maxEntries: 5000 };

/** Measures samples alone and together, and adds the results to the performance data. */
export class SampleMeasurements {
  private readonly known: BoundedCache<number>;

  constructor(private readonly parts: SampleMeasurementsParts) {
    this.known = new BoundedCache(parts.clock, aloneBounds);
  }

  /** Measures a sample alone at each share class, unless a curve with the GPU's driver exists. */
  async profile(sample: Sample, on: MeasurementTarget): Promise<void> {
    const { performanceData, maxSampleMs } = this.parts;
    const { curves } = performanceData;
    const { gpu, gpuType, mode } = on;
    const driverMajor = performanceData.driverOf(gpu);
    const { function: name, version, batch } = sample.job;
    if (curves.of(sample.job, on)?.driverMajor === driverMajor) return;
    const soloMs = await this.soloMs(sample, on);
    const slowdowns: number[] = [];
    for (const shareClass of shareClasses) {
      const ms = await this.aloneMs(sample, shareClass, on);
      slowdowns.push(Math.min(ms, maxSampleMs) / soloMs);
    }
    const refused = curves.add({ job: { function: name, version, batch }, gpuType, mode, driverMajor, slowdowns });
    if (refused !== undefined) throw new Error(`the curve of ${name} was refused: ${refused}`);
  }

  /**
   * Runs a set's samples with these shares, percent, and returns their slowdowns. The slowdowns also become samples for the
   * predictor.
   */
  async together(
    set: readonly QuotaJob[],
    samples: readonly Sample[],
    shares: Allotment,
    on: MeasurementTarget,
  ): Promise<number[]> {
    const { runner, performanceData } = this.parts;
    const soloMs: number[] = [];
    for (const sample of samples) soloMs.push(await this.soloMs(sample, on));
    const members = samples.map((sample, at) => ({ sample, shareClass: shares[at] as ShareClass }));
    const slowdowns = await runner.together(members, soloMs, on.gpu, on.signal);
    const terms = set.map(({ features }, at) => features && { features, share: ofMember(shares, at) / 100 });
    for (const [at, one] of terms.entries()) {
      const others = terms.filter((_, other) => other !== at).filter((other) => other !== undefined);
      if (one === undefined || others.length < set.length - 1) continue;
      const refused = performanceData.runs.add(on, { one, others, slowdown: ofMember(slowdowns, at) });
      performanceData.metrics.runOffered(refused === undefined ? 'taken' : 'refused');
    }
    return slowdowns;
  }

  /** A sample's time alone at 100 %, ms, as it was measured in the last hour or is now. Rejects if it is too long. */
  async soloMs(sample: Sample, on: MeasurementTarget): Promise<number> {
    const ms = await this.aloneMs(sample, 100, on);
    if (ms < Infinity) return ms;
    throw new Error(`the sample of ${sample.job.function} takes more than ${this.parts.maxSampleMs} ms`);
  }

  /** A sample's time alone with a share, ms, as it was measured in the last hour or is now; Infinity if it is too long. */
  async aloneMs(sample: Sample, shareClass: ShareClass, on: MeasurementTarget): Promise<number> {
    const name = `${kindName(on)} ${jobId(sample.job)} ${shareClass}`;
    const known = this.known.get(name);
    if (known !== undefined) return known;
    const ms = await this.parts.runner.alone({ sample, shareClass }, on.gpu, on.signal);
    this.known.set(name, ms);
    return ms;
  }
}
