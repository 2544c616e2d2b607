import type { FailedJob, Jobs, PendingJob } from '@gpuwhisk/common/jobs/jobs';
import { rowKey } from '@gpuwhisk/gpu/share/quota-row';
import { quotaSearchKind } from '@gpuwhisk/gpu/share/quota-search';
import type { WantedSet } from '@gpuwhisk/gpu/share/set-demands';
import type { PerformanceData } from '../learning/performance-data.js';
import type { Sample, SampleSource } from './sample-source.js';
import type { SearchedSet, SearchState } from '../learning/performance-view.js';

/** For how long it is believed what keeps functions from being run, ms, and of how many sets it is remembered. */
const problemMs = 60_000;
const maxProblems = 1000;

/** Tracks what keeps sets from being searched for, and how far each search is. */
export class SearchTracker {
  /** By set: by job, why it must not be run; and until when that is believed, epoch ms. */
  private readonly problems = new Map<string, { until: number; byJob: (string | undefined)[] }>();
  /** As of the last refresh, by set. */
  private pending = new Map<string, PendingJob>();
  private failed: readonly FailedJob[] = [];

  constructor(
    private readonly jobs: Pick<Jobs, 'pending' | 'failed'>,
    private readonly performanceData: Pick<PerformanceData, 'demands' | 'table'>,
    private readonly source: Pick<SampleSource, 'of'>,
  ) {}

  /** Looks how far the jobs are; gives the sets that one waits or runs for. Rejects where the jobs cannot be asked. */
  async refresh(): Promise<ReadonlySet<string>> {
    const [pending, failed] = [await this.jobs.pending(), await this.jobs.failed()];
    this.pending = new Map(pending.filter(({ kind }) => kind === quotaSearchKind).map((one) => [one.key, one]));
    this.failed = failed.filter(({ kind }) => kind === quotaSearchKind);
    return new Set(this.pending.keys());
  }

  /** Whether a search for a set has failed at `at`, epoch ms, or later, as of the last refresh. */
  hasFailedSince(key: string, at: number): boolean {
    return this.failed.some((one) => one.key === key && one.at >= at);
  }

  /** The samples of a set; undefined where there is one that must not be run. Rejects where the store fails. */
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
    this.problems.set(key, { until: now + problemMs, byJob });
    const [oldest] = this.problems.keys();
    if (this.problems.size > maxProblems && oldest !== undefined) this.problems.delete(oldest);
    return undefined;
  }

  /**
   * Every set that a search is wanted for, waits for, runs for or failed for; `gpus`: by GPU that a search has, its set;
   * `here`: those whose search runs in this process.
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
    // Searches of earlier processes are known by the measurements of their sets.
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
