import { keepNewest } from '@gpuwhisk/common/collections';
import type { Config } from '@gpuwhisk/common/config';
import { isApiError } from '@gpuwhisk/common/errors';
import { kindName } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type {
  JobAttempt,
  JobBody,
  JobHandler,
  JobRequest,
  Jobs,
  FailedJob,
  PendingJob,
} from '@gpuwhisk/common/jobs/jobs';
import type { Logger } from '@gpuwhisk/common/logging';
import { every } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { quotaSearchBody, quotaSearchJob, quotaSearchKind } from '@gpuwhisk/gpu/share/quota-search';
import type { QuotaSearchRequest } from '@gpuwhisk/gpu/share/quota-search';
import type { WantedSet } from '@gpuwhisk/gpu/share/set-demands';
import { rowKey } from '@gpuwhisk/gpu/share/quota-row';
import type { SampledPlace } from '../scheduler/running-places.js';
import type { GpuScheduler } from '../scheduler/gpu-scheduler.js';
import type { PerformanceData } from '../learning/performance-data.js';
import type { Outcome } from '../learning/learning-metrics.js';
import { wantsSamples } from '../learning/sample-curves.js';
import { unlessAborted } from './sample-runner.js';
import type { MeasurementTarget, Sample, SampleMeasurements, SampleSource } from './sample-runner.js';
import { IdleGpus } from './idle-gpus.js';
import { pairMeasurementKind } from './pair-measurements.js';
import type { PairMeasurements, PairRequest } from './pair-measurements.js';
import { isProfilingOf, profilingKey, profilingKind } from './profilings.js';
import type { Profilings, ProfilingRequest } from './profilings.js';
import type { SearchedSet, SearchState } from '../learning/measurement-states.js';

/** Dependencies of QuotaSearches. */
export interface QuotaSearchesParts {
  performanceData: PerformanceData;
  jobs: Jobs;
  scheduler: Pick<GpuScheduler, 'sampledPlaces' | 'tellWanted' | 'waiting'>;
  source: Pick<SampleSource, 'of'>;
  /** Measures sets; its times of functions alone are those of the measured pairs too. */
  measures: SampleMeasurements;
  /** Measures pairs of functions while no set is to be searched for. */
  pairs: Pick<PairMeasurements, 'next' | 'measure'>;
  /** Runs trials of functions for their request and limit. */
  profilings: Pick<Profilings, 'next' | 'run'>;
  clock: Clock;
  random: Random;
  logger: Logger;
  options: Config['gpu']['search'];
}

const lookMs = 1000;
/** Most concurrent searches of this process, each on its own GPU. */
const concurrency = 4;
/** Timeout of one attempt, ms. */
const timeoutMs = 15 * 60_000;
/** Longest wait of an attempt for its GPU, ms, and interval of its looks, ms. */
const [idleWaitMs, idleLookMs] = [30_000, 250];
/** Delay of a set's next search after a failure, ms. */
const afterFailureMs = 10 * 60_000;

/**
 * Searches for the shares of sets that were formed often (FaaShare's online phase, section VII-B). One job per set runs
 * samples of its functions together on an idle GPU until real work needs the GPU. GPUs without such a set run trials of
 * functions for their request and limit, one function a GPU, and measure pairs of functions for the models of degradation,
 * one pair at a time in the whole cluster.
 */
export class QuotaSearches {
  private readonly idle = new IdleGpus();
  private readonly tracker: SearchTracker;
  /** The set that is searched for on each GPU, by its key. */
  private readonly searched = new Map<string, string>();
  /** Sets whose job runs here. */
  private readonly here = new Set<string>();
  private handlers: JobHandler[] = [];
  private timer: Timer | undefined;
  private isLooking = false;
  private closed = false;

  constructor(private readonly parts: QuotaSearchesParts) {
    this.tracker = new SearchTracker(parts.jobs, parts.performanceData, parts.source);
  }

  /** Begins to take up jobs and to look for idle GPUs, whenever this controller is the leader. */
  open(): void {
    const { scheduler, performanceData } = this.parts;
    scheduler.tellWanted((gpus) => this.wanted(gpus));
    performanceData.searches = () => this.tracker.all(this.searched, this.here);
    performanceData.profilingJobs = {
      isPossible: () => this.handlers.length > 0 && scheduler.sampledPlaces().some(({ mode }) => mode === 'mps'),
      isRunning: (name) => [...this.here].some((key) => isProfilingOf(key, name)),
      stateOf: (wanted, kind) => this.tracker.stateOf(profilingKey(wanted, kind), this.searched, this.here),
    };
    performanceData.trials.whenStopped((name) => this.stopProfiling(name));
    this.timer = every(this.parts.clock, lookMs, () => this.look());
  }

  /** Stops looking for idle GPUs; running jobs go on until the job system is closed. */
  close(): void {
    this.closed = true;
    this.timer?.cancel();
  }

  /** Interrupts searches when work arrives for their GPUs, or for any GPU. */
  private wanted(gpus: readonly string[] | undefined): void {
    const nowMs = this.parts.clock.monotonicMs();
    const places = gpus ?? this.parts.scheduler.sampledPlaces().map(({ id }) => id);
    this.idle.busy(places, nowMs);
    for (const gpu of places) if (this.searched.has(gpu)) this.parts.jobs.interrupt(resourceOf(gpu));
  }

  /** Ends the trials of a function at once; a job that runs again finds nothing to do. */
  private stopProfiling(name: string): void {
    for (const [gpu, key] of this.searched) {
      if (isProfilingOf(key, name)) this.parts.jobs.interrupt(resourceOf(gpu));
    }
  }

  private look(): void {
    const { scheduler, clock, logger } = this.parts;
    const places = scheduler.sampledPlaces();
    this.idle.look(places, scheduler.waiting > 0, clock.monotonicMs());
    if (this.isLooking) return;
    this.isLooking = true;
    this.followLeadership(places.length > 0)
      .then(() => this.submitNext())
      // The next look repeats it.
      .catch((error: unknown) => logger.info({ reason: String(error) }, 'no search for shares was started'))
      .finally(() => (this.isLooking = false));
  }

  /** Starts and stops jobs with leadership, as they need a view of the GPUs. */
  private async followLeadership(isLeader: boolean): Promise<void> {
    const { jobs } = this.parts;
    if (this.closed || isLeader === this.handlers.length > 0) return;
    if (isLeader) {
      const search: JobBody = (payload, attempt) => this.search(payload, attempt);
      const { pairs, profilings, performanceData } = this.parts;
      const { pairRun, profiled } = performanceData.metrics;
      const measure = this.whileIdle<PairRequest>(pairRun, (request, on) => pairs.measure(request, on));
      const profile = this.whileIdle<ProfilingRequest>(profiled, (request, on) => profilings.run(request, on));
      this.handlers = [
        jobs.handle(quotaSearchKind, { concurrency, timeoutMs }, search),
        jobs.handle(pairMeasurementKind, { concurrency: 1, timeoutMs }, measure),
        jobs.handle(profilingKind, { concurrency, timeoutMs }, profile),
      ];
      return;
    }
    const { handlers } = this;
    this.handlers = [];
    for (const handler of handlers) await handler.close();
  }

  /** Submits jobs for the sets with the most demand, on idle GPUs. */
  private async submitNext(): Promise<void> {
    const { performanceData, clock, options } = this.parts;
    if (this.handlers.length === 0) return;
    const pending = await this.tracker.refresh();
    for (const [gpu, key] of this.searched) if (!pending.has(key) && !this.here.has(key)) this.searched.delete(gpu);
    const now = clock.now();
    for (const wanted of performanceData.demands.list()) {
      if (wanted.asked < options.minAsked || this.closed) break;
      if (pending.has(wanted.key)) continue;
      if (!wantsSamples(performanceData, wanted.set, wanted)) performanceData.demands.forget(wanted.key);
      else if (!this.tracker.hasFailedSince(wanted.key, now - afterFailureMs)) await this.submit(wanted, now);
    }
    await this.submitProfiling(pending, now);
    await this.submitPair(now);
  }

  /** The idle GPUs that no job is for. */
  private unusedGpus(): SampledPlace[] {
    const { clock, options } = this.parts;
    const idle = this.idle.since(options.idleMs, clock.monotonicMs());
    return idle.filter(({ id }) => !this.searched.has(id));
  }

  /** Submits a job for a function's trials on an idle GPU that no set is searched for on. */
  private async submitProfiling(pending: ReadonlySet<string>, now: number): Promise<void> {
    const request = await this.parts.profilings.next(
      this.unusedGpus(),
      (key) => pending.has(key) || this.tracker.hasFailedSince(key, now - afterFailureMs),
    );
    // An attempt that a crash has ended is repeated.
    if (request !== undefined) await this.submitOn(request, { kind: profilingKind });
  }

  /** Submits a job for a pair of functions on an idle GPU that nothing else is measured on. */
  private async submitPair(now: number): Promise<void> {
    if (this.tracker.isMeasuringPair) return;
    const request = await this.parts.pairs.next(this.unusedGpus(), (key) =>
      this.tracker.hasFailedSince(key, now - afterFailureMs),
    );
    if (request !== undefined) await this.submitOn(request, { kind: pairMeasurementKind, maxAttempts: 1 });
  }

  /** Submits a job on the GPU that a request names. */
  private async submitOn(
    request: PairRequest | ProfilingRequest,
    how: Pick<JobRequest, 'kind' | 'maxAttempts'>,
  ): Promise<void> {
    if (this.closed) return;
    this.searched.set(request.gpu, request.key);
    await this.parts.jobs.submit({
      ...how,
      key: request.key,
      payload: request as unknown as JsonValue,
      resource: resourceOf(request.gpu),
    });
  }

  private async submit(wanted: WantedSet, now: number): Promise<void> {
    const { performanceData, jobs, clock, options } = this.parts;
    const samples = await this.tracker.samplesOf(wanted, now);
    if (samples === undefined) return;
    const memoryMiB = samples.reduce((sum, sample) => sum + sample.memoryMiB, 0);
    const place = this.idle
      .since(options.idleMs, clock.monotonicMs())
      .find((one) => kindName(wanted) === kindName(one) && one.memoryMiB >= memoryMiB && !this.searched.has(one.id));
    if (place === undefined || this.closed) return;
    const gpu = place.id;
    // Noted before the job can run; the next look removes a set whose job was not accepted.
    this.searched.set(gpu, wanted.key);
    await jobs.submit(quotaSearchJob({ ...wanted, gpu }));
    performanceData.demands.restart(wanted.key);
  }

  /** The body of a job that searches for a set's shares. */
  private async search(payload: JsonValue, attempt: JobAttempt): Promise<void> {
    const { set, gpu, gpuType, mode } = payload as unknown as QuotaSearchRequest;
    const { performanceData, logger, measures } = this.parts;
    const { signal } = attempt;
    const { key } = quotaSearchJob({ set, gpu, gpuType, mode, maxSlowdowns: set.map(() => Infinity) });
    const count = (outcome: Outcome): void => performanceData.metrics.searched(outcome);
    await this.onGpu(key, { gpu, gpuType, mode, signal }, count, async (on, whenIdle) => {
      const samples: Sample[] = [];
      for (const job of set) {
        const sample = await this.parts.source.of(job);
        // The function's owner has changed it: the demand for this set is over.
        if (typeof sample === 'string') {
          logger.info({ function: job.function, reason: sample }, 'a search for shares was cancelled');
          return;
        }
        samples.push(sample);
      }
      await whenIdle();
      for (const sample of samples) await measures.profile(sample, on);
      await performanceData.saved();
      // For a single function the profile is the result.
      if (set.length > 1) {
        const { profiles } = performanceData.curves;
        await quotaSearchBody({
          table: performanceData.table,
          priorOf: (job, kind) => profiles.priorOf(job, kind, performanceData.predictors.predictor(kind)),
          hyperOf: (kind) => profiles.hyperOf(kind),
          driverMajorOf: (one) => performanceData.driverOf(one),
          saved: () => performanceData.saved(),
          measure: (_, shares) => measures.together(set, samples, shares, on),
          random: this.parts.random,
        })(payload, attempt);
      }
      performanceData.demands.forget(key);
      count('done');
      logger.info({ set: key, gpu }, 'a search for shares has ended');
    });
  }

  /**
   * The body of a job whose work returns whether it has a result. The job ends where other work comes for its GPU: the next
   * look chooses a GPU again.
   */
  private whileIdle<Request extends PairRequest | ProfilingRequest>(
    count: (outcome: Outcome) => void,
    work: (request: Request, on: MeasurementTarget) => Promise<boolean>,
  ): JobBody {
    return async (payload, { signal }) => {
      const request = payload as unknown as Request;
      const { key, gpu, gpuType, mode } = request;
      try {
        await this.onGpu(key, { gpu, gpuType, mode, signal }, count, async (on, whenIdle) => {
          await whenIdle();
          if (!(await work(request, on))) return;
          await this.parts.performanceData.saved();
          count('done');
        });
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    };
  }

  /** Does the work of a job on its GPU, and counts an attempt that did not end well. `whenIdle` waits for the GPU. */
  private async onGpu(
    key: string,
    on: MeasurementTarget,
    count: (outcome: Outcome) => void,
    work: (on: MeasurementTarget, whenIdle: () => Promise<void>) => Promise<void>,
  ): Promise<void> {
    const { gpu, signal } = on;
    this.searched.set(gpu, key);
    this.here.add(key);
    try {
      await work(on, () => this.whenIdle(gpu, signal));
    } catch (error) {
      // The GPU was not available, which is no failure of the samples.
      if (isApiError(error) && error.status === 503) this.parts.jobs.interrupt(resourceOf(gpu));
      count(signal.aborted ? 'interrupted' : 'failed');
      throw error;
    } finally {
      this.here.delete(key);
    }
  }

  /** Waits until a GPU has been idle long enough and has no tenants. Throws an Error if that takes too long. */
  private async whenIdle(gpu: string, signal: AbortSignal): Promise<void> {
    const { clock, scheduler, options, jobs } = this.parts;
    const untilMs = clock.monotonicMs() + idleWaitMs;
    for (;;) {
      const nowMs = clock.monotonicMs();
      const place = this.idle.since(options.idleMs, nowMs).find(({ id }) => id === gpu);
      const isEmpty = scheduler.sampledPlaces().some(({ id, isEmpty }) => id === gpu && isEmpty);
      if (place !== undefined && isEmpty) return;
      if (nowMs >= untilMs) {
        jobs.interrupt(resourceOf(gpu));
        throw new Error(`${gpu} is in use`);
      }
      await unlessAborted(signal, () => new Promise<void>((done) => void clock.setBackgroundTimer(idleLookMs, done)));
    }
  }
}

const resourceOf = (gpu: string): string => `gpu/${gpu}`;

/** How long the reason against running a function is cached, ms; and for how many sets. */
const problemMs = 60_000;
const maxProblems = 1000;

/** Tracks the reasons against searches, and the progress of each search. */
class SearchTracker {
  /** By set: the reasons by function why a search must not run it, and their expiry, epoch ms. */
  private readonly problems = new Map<string, { until: number; byJob: (string | undefined)[] }>();
  /** Jobs by set, as of the last refresh. */
  private pending = new Map<string, PendingJob>();
  /** Whether the job of a pair waits or runs, as of the last refresh. */
  isMeasuringPair = false;
  private failed: readonly FailedJob[] = [];

  constructor(
    private readonly jobs: Pick<Jobs, 'pending' | 'failed'>,
    private readonly performanceData: Pick<PerformanceData, 'demands' | 'table'>,
    private readonly source: Pick<SampleSource, 'of'>,
  ) {}

  /**
   * Refreshes the states of the jobs. Returns the keys of the waiting and running ones. Rejects if the jobs cannot be read.
   */
  async refresh(): Promise<ReadonlySet<string>> {
    const [pending, failed] = [await this.jobs.pending(), await this.jobs.failed()];
    const ofKinds = (...kinds: string[]): PendingJob[] => pending.filter(({ kind }) => kinds.includes(kind));
    this.pending = new Map(ofKinds(quotaSearchKind, profilingKind).map((one) => [one.key, one]));
    const pairs = ofKinds(pairMeasurementKind).map(({ key }) => key);
    this.isMeasuringPair = pairs.length > 0;
    this.failed = failed.filter(({ kind }) => [quotaSearchKind, pairMeasurementKind, profilingKind].includes(kind));
    return new Set([...this.pending.keys(), ...pairs]);
  }

  /** The state of a job, or undefined if there is none. */
  stateOf(key: string, gpus: ReadonlyMap<string, string>, here: ReadonlySet<string>): SearchState | undefined {
    return this.states(gpus, here).get(key);
  }

  /** Whether the search for a set, or the measurement of a pair, has failed at `at` (epoch ms) or later, as of the last refresh. */
  hasFailedSince(key: string, at: number): boolean {
    return this.failed.some((one) => one.key === key && one.at >= at);
  }

  /** The samples of a set; undefined if one of them must not be run. Rejects if the store fails. */
  async samplesOf({ key, set }: WantedSet, now: number): Promise<Sample[] | undefined> {
    if ((this.problems.get(key)?.until ?? -Infinity) > now) return undefined;
    this.problems.delete(key);
    const samples: Sample[] = [];
    const byJob: (string | undefined)[] = [];
    for (const job of set) {
      const found = await this.source.of(job);
      if (typeof found !== 'string') samples.push(found);
      byJob.push(typeof found === 'string' ? found : undefined);
    }
    if (samples.length === set.length) return samples;
    keepNewest(this.problems, key, { until: now + problemMs, byJob }, maxProblems);
    return undefined;
  }

  /**
   * All sets with a wanted, waiting, running or failed search. `gpus`: the set that is searched for on each GPU. `here`:
   * sets whose search runs in this process.
   */
  all(gpus: ReadonlyMap<string, string>, here: ReadonlySet<string>): SearchedSet[] {
    const states = this.states(gpus, here);
    const wanted = this.performanceData.demands.list().map(({ key, gpuType, mode, set, asked }): SearchedSet => {
      const byJob = this.problems.get(key)?.byJob ?? [];
      const jobs = set.map(({ function: name, version }, at) => ({
        function: name,
        version,
        ...(byJob[at] !== undefined && { problem: byJob[at] }),
      }));
      const state = states.get(key) ?? { stage: byJob.length > 0 ? 'impossible' : 'asked' };
      states.delete(key);
      return { key, gpuType, mode, jobs, search: { ...state, asked } };
    });
    // Finished searches of earlier processes appear as measurements of their sets.
    const others = this.performanceData.table.rows().flatMap((row): SearchedSet[] => {
      const key = rowKey(row);
      const state = states.get(key);
      return state === undefined || (row.searched && state.stage === 'failed')
        ? []
        : [{ key, gpuType: row.gpuType, mode: row.mode, jobs: row.jobs, search: state }];
    });
    return [...wanted, ...others];
  }

  private states(gpus: ReadonlyMap<string, string>, here: ReadonlySet<string>): Map<string, SearchState> {
    const states = new Map<string, SearchState>();
    for (const { key, attempts, reason } of this.failed) states.set(key, { stage: 'failed', attempts, reason });
    const gpuOf = new Map(Array.from(gpus, ([gpu, key]) => [key, gpu]));
    for (const key of new Set([...this.pending.keys(), ...here])) {
      const { attempts, state = 'running' } = this.pending.get(key) ?? {};
      const gpu = gpuOf.get(key);
      states.set(key, {
        stage: here.has(key) ? 'running' : state,
        ...(attempts !== undefined && { attempts }),
        ...(gpu !== undefined && { gpu }),
      });
    }
    return states;
  }
}
