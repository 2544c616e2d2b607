import type { Measurement } from '../bench.js';
import { median, percentile } from '../statistics.js';
import type { ReplayMetrics } from '../replay/metrics.js';
import type { ReplayJob } from '@gpuwhisk/gpu/simulate/replay';
import type { PlayedJob } from './player.js';

/** What a trace came to, on the platform or in the simulator. Times in ms. */
export interface TraceFigures {
  jctMs: number;
  /** From start to result. */
  runMs: number;
  p95Ms: number;
  makespanMs: number;
  /** Part of the jobs with an SLO that had no result in time. */
  violations: number;
}

/** Mean of some values. */
export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The figures of jobs that were played. */
export function playedFigures(jobs: readonly ReplayJob[], played: readonly PlayedJob[]): Compared['live'] {
  const jct = played.map(({ jctMs }) => jctMs);
  const strict = jobs.filter(({ task }) => task.sloMs !== undefined).length;
  const late = played.filter(({ jctMs }, i) => jctMs > (jobs[i]?.task.sloMs ?? Infinity)).length;
  const first = Math.min(...jobs.map(({ task }) => task.arrivedAt));
  return {
    jctMs: meanOf(jct),
    runMs: meanOf(played.map(({ jctMs, queueMs }) => jctMs - queueMs)),
    p95Ms: percentile(jct, 95),
    makespanMs: Math.max(...played.map(({ finishedMs }) => finishedMs)) - first,
    violations: strict === 0 ? 0 : late / strict,
    warmStarts: played.filter(({ start }) => start === 'warm').length / played.length,
  };
}

/** A trace on the platform and in the simulator. */
export interface Compared {
  live: TraceFigures & { warmStarts: number };
  replay: ReplayMetrics;
  /** What the simulator says of the same trace first come, first served: whether the comparison can tell policies apart. */
  replayFcfs: ReplayMetrics;
  /** And with the starts as the trace itself had them, on average: what is left is not their doing. */
  replayAsStarted: ReplayMetrics;
}

/** Medians over the traces; ratios are of the platform over the simulator, by trace. */
export function comparison(traces: readonly Compared[]): Measurement[] {
  const over = (name: string, value: (trace: Compared) => number): Measurement => {
    const values = traces.map(value);
    return { name, value: median(values), spread: [Math.min(...values), Math.max(...values)] };
  };
  const names = ['jctMs', 'runMs', 'p95Ms', 'makespanMs', 'violations'] as const;
  const capital = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
  return [
    over('liveJctRatio', ({ live, replay }) => live.jctMs / replay.jctMs),
    over('liveJctRatioAsStarted', ({ live, replayAsStarted }) => live.jctMs / replayAsStarted.jctMs),
    over('liveMakespanRatio', ({ live, replay }) => live.makespanMs / replay.makespanMs),
    over('liveP95Ratio', ({ live, replay }) => live.p95Ms / replay.p95Ms),
    over('replayFcfsJctRatio', ({ replay, replayFcfs }) => replayFcfs.jctMs / replay.jctMs),
    over('liveWarmStarts', ({ live }) => live.warmStarts),
    ...names.flatMap((name) => [
      over(`live${capital(name)}`, ({ live }) => live[name]),
      over(`replay${capital(name)}`, ({ replay }) => replay[name]),
    ]),
  ];
}
