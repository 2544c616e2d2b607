// What the cluster runs now: counts by second, and the runs on GPUs with what was predicted of them.
import type { JsonValue } from '../json.js';
import type { Logger } from '../logging.js';
import type { ClusterState } from '../state/cluster-state.js';
import type { Clock, Timer } from '../system/clock.js';

/** The channel on which processes tell controllers what they have run: ActivityReport. */
export const activityChannel = 'activity';

/** How a run found its container. */
export const startKinds = ['cold', 'prewarmed', 'injected', 'warm'] as const;
/** One of them. */
export type StartKind = (typeof startKinds)[number];

/** Numbers of ended activations. */
export interface ActivityCounts extends Record<StartKind, number> {
  activations: number;
  /** Those that did not succeed. */
  failed: number;
  /** Those with an SLO, and those of them that succeeded within it. */
  withSlo: number;
  metSlo: number;
}

/** An activation that has ended. */
export interface EndedActivation {
  /** That it ran for. */
  namespace: string;
  /** Absent: it never reached its code. */
  start?: StartKind | undefined;
  isFailed: boolean;
  /** From acceptance to result, ms; absent: best effort, or no GPU. */
  sloMs?: number | undefined;
  /** From acceptance to its end, ms. */
  tookMs: number;
  /** Its run on a GPU, if its time was predicted. */
  gpuRun?: Omit<GpuRun, 'namespace'> | undefined;
}

/** A run on a GPU whose time was predicted. */
export interface GpuRun {
  activationId: string;
  /** UUID of the first device. */
  device: string;
  /** `/namespace/action`. */
  action: string;
  /** That it ran for. */
  namespace: string;
  /** End of the run, epoch ms. */
  at: number;
  /** Predicted and actual time of the run, loading excluded, ms. */
  predictedMs: number;
  actualMs: number;
}

/** What a process has run since its last report. */
export interface ActivityReport {
  /** Counts by namespace; those of namespaces beyond the bound are under an empty name. */
  counts: Record<string, ActivityCounts>;
  /** The first runs on GPUs since then. */
  runs: GpuRun[];
}

/** Time between two reports, ms. */
const reportMs = 1000;
/** Namespaces that are told apart in a report. */
export const maxNamespaces = 100;
/** Runs that a report names. */
const maxRuns = 50;

/** Counts of nothing. */
export function noActivity(): ActivityCounts {
  return { activations: 0, failed: 0, cold: 0, prewarmed: 0, injected: 0, warm: 0, withSlo: 0, metSlo: 0 };
}

/** Adds `more` to `counts`. */
export function addActivity(counts: ActivityCounts, more: ActivityCounts): void {
  for (const name of Object.keys(counts) as (keyof ActivityCounts)[]) counts[name] += more[name];
}

/** The counts that are kept for a namespace, of at most `maxNamespaces`; those of further ones are kept together. */
export function countsOf(kept: Map<string, ActivityCounts>, namespace: string): ActivityCounts {
  const key = kept.has(namespace) || kept.size < maxNamespaces ? namespace : '';
  let counts = kept.get(key);
  if (counts === undefined) kept.set(key, (counts = noActivity()));
  return counts;
}

/** Dependencies of ActivityReporter. */
export interface ActivityReporterParts {
  state: Pick<ClusterState, 'publish'>;
  clock: Clock;
  logger: Logger;
}

/** Counts the activations that end in this process, and tells controllers each second. A report that fails is lost. */
export class ActivityReporter {
  private counts = new Map<string, ActivityCounts>();
  private runs: GpuRun[] = [];
  private timer: Timer | undefined;

  constructor(private readonly parts: ActivityReporterParts) {}

  /** Counts an activation. */
  ended({ namespace, start, isFailed, sloMs, tookMs, gpuRun }: EndedActivation): void {
    const counts = countsOf(this.counts, namespace);
    counts.activations++;
    if (isFailed) counts.failed++;
    if (start !== undefined) counts[start]++;
    if (sloMs !== undefined) {
      counts.withSlo++;
      if (!isFailed && tookMs <= sloMs) counts.metSlo++;
    }
    if (gpuRun !== undefined && this.runs.length < maxRuns) this.runs.push({ ...gpuRun, namespace });
    this.timer ??= this.parts.clock.setBackgroundTimer(reportMs, () => this.report());
  }

  /** Stops reporting. */
  close(): void {
    this.timer?.cancel();
  }

  private report(): void {
    this.timer = undefined;
    const report: ActivityReport = { counts: Object.fromEntries(this.counts), runs: this.runs };
    this.counts = new Map();
    this.runs = [];
    this.parts.state
      .publish(activityChannel, report as unknown as JsonValue)
      .catch((error: unknown) => this.parts.logger.debug({ error: String(error) }, 'activity was not reported'));
  }
}
