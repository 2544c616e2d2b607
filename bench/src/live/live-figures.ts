// Figures of live runs.
import type { Measurement } from '../bench.js';
import { medianOf } from '../bench.js';
import type { Compared } from './live-run.js';
import { startKinds } from './player.js';

const capital = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);

/**
 * Medians over the traces; ratios divide the platform's value by the simulator's, trace by trace. Names end with
 * `suffix`.
 */
export function comparison(traces: readonly Compared[], suffix = ''): Measurement[] {
  const over = (name: string, value: (trace: Compared) => number): Measurement =>
    medianOf(name + suffix, traces.map(value));
  const names = ['jctMs', 'runMs', 'p95Ms', 'makespanMs', 'violations'] as const;
  return [
    over('liveJctRatio', ({ live, replay }) => live.jctMs / replay.jctMs),
    over('liveJctRatioAsStarted', ({ live, replayAsStarted }) => live.jctMs / replayAsStarted.jctMs),
    over('liveMakespanRatio', ({ live, replay }) => live.makespanMs / replay.makespanMs),
    over('liveP95Ratio', ({ live, replay }) => live.p95Ms / replay.p95Ms),
    over('replayFcfsJctRatio', ({ replay, replayFcfs }) => replayFcfs.jctMs / replay.jctMs),
    ...names.flatMap((name) => [
      over(`live${capital(name)}`, ({ live }) => live[name]),
      over(`replay${capital(name)}`, ({ replay }) => replay[name]),
    ]),
    ...startFigures(traces, suffix),
  ];
}

/** Parts of the starts by kind, medians over the traces, and the median time of each kind over all traces, ms. */
function startFigures(traces: readonly Compared[], suffix: string): Measurement[] {
  return startKinds.flatMap((kind) => {
    const parts = traces.map(({ starts }) => starts[kind].length / Object.values(starts).flat().length);
    const times = traces.flatMap(({ starts }) => starts[kind]);
    return [
      medianOf(`live${capital(kind)}Starts${suffix}`, parts),
      ...(times.length === 0 ? [] : [medianOf(`live${capital(kind)}StartMs${suffix}`, times)]),
    ];
  });
}

/** Figures of the use of learned data, medians over the traces. */
export function learnedFigures(traces: readonly Compared[]): Measurement[] {
  const over = (name: string, value: (trace: Compared) => number): Measurement => medianOf(name, traces.map(value));
  return [
    over('liveTableHits', ({ use }) => use.hits),
    over('liveTableTaken', ({ use }) => use.taken),
    over('liveTableChoices', ({ use }) => use.choices),
    over('replayTableHits', ({ replay }) => replay.tableHitShare),
    over('liveModelVersion', ({ use }) => use.modelVersion),
    over('liveModelSamples', ({ use }) => use.modelSamples),
    over('liveModelError', ({ use }) => use.modelError),
    over('replayUntrainedJctRatio', ({ replay, replayUntrained }) => replayUntrained.jctMs / replay.jctMs),
  ];
}
