/** A bound that a figure must reach. */
export interface Bar {
  bench: string;
  metric: string;
  bound: 'at least' | 'at most';
  value: number;
  /** Document that says what the figure is. */
  source: string;
  /** The experiment waits to be written again: no run reaches the bar or misses it. */
  isPending?: true;
}

/** A bar whose document is that of its bench unless it names another one. */
export type BarOfBench = Omit<Bar, 'source'> & { source?: string };

/** Documents of benches that have no section of their own in docs/benchmarks.md. */
const documents: Readonly<Record<string, string>> = {
  inject: 'docs/mscontainer.md',
};
const section = (bench: string): string => documents[bench] ?? `docs/benchmarks.md#${bench}`;

/** Loads of bench `neighbours`, with the numbers of hostile namespaces. */
const neighbourLoads = [
  'streams',
  'lists',
  'counts',
  'puts',
  'coldStarts',
  'builds',
  'logs',
  'installs',
  'jobs',
].flatMap((load) => [`${load}.1`, `${load}.20`]);
const neighbourBar = (metric: string, value: number): BarOfBench[] =>
  neighbourLoads.map((load) => ({
    bench: 'neighbours',
    metric: `${metric}.${load}`,
    bound: 'at most',
    value,
  }));

/** Bench `real`: starts that meet a process with their modules. */
const realBar = (metric: string, bound: Bar['bound'], value: number): BarOfBench => ({
  bench: 'real',
  metric,
  bound,
  value,
});
const realBars = [
  ...['pythonImage', 'numpy', 'pandas'].flatMap((set) => [
    realBar(`realColdMs.${set}.other`, 'at most', 25),
    realBar(`realColdMs.${set}.second`, 'at most', 25),
    realBar(`realColdMs.${set}.eight`, 'at most', 80),
    realBar(`realColdP95Ms.${set}.eight`, 'at most', 150),
  ]),
  realBar('realColdMs.nodejsImage.other', 'at most', 40),
  realBar('realColdMs.nodejsImage.second', 'at most', 40),
  realBar('realColdMs.model.second', 'at most', 60),
  realBar('readyAgainMs.numpy', 'at most', 40),
  realBar('realSpeedup.numpy', 'at least', 20),
  realBar('realColdMs.jackson.other', 'at most', 150),
  realBar('realPssOfTen.numpy', 'at most', 2.5),
  realBar('realWaitedOverKeepAlive', 'at most', 0.2),
];

const documented: readonly BarOfBench[] = [
  { bench: 'share', metric: 'sharedThroughput.plain', bound: 'at least', value: 1.3 },
  { bench: 'share', metric: 'ofBestSets.plain', bound: 'at least', value: 0.9 },
  { bench: 'share', metric: 'sharedThroughput.losing', bound: 'at least', value: 1 },
  { bench: 'share', metric: 'ofBestSets.losing', bound: 'at least', value: 0.9 },
  { bench: 'share', metric: 'latePointsOver.strict', bound: 'at most', value: 0.5 },
  ...['plain', 'losing', 'strict'].flatMap((part): BarOfBench[] => [
    { bench: 'share', metric: `minutesToShare.${part}`, bound: 'at most', value: 1 },
    { bench: 'share', metric: `lostToTrials.${part}`, bound: 'at most', value: 0.02 },
    { bench: 'share', metric: `splitRuns.${part}`, bound: 'at most', value: 10 },
  ]),
  ...realBars,
  { bench: 'invoke', metric: 'addedP50Ms', bound: 'at most', value: 0.15 },
  { bench: 'invoke', metric: 'addedP50PythonMs', bound: 'at most', value: 0.17 },
  { bench: 'invoke', metric: 'ratio64', bound: 'at least', value: 0.3 },
  { bench: 'invoke', metric: 'ratio64Python', bound: 'at least', value: 0.25 },
  { bench: 'invoke', metric: 'ratio64Concurrent', bound: 'at least', value: 0.45 },
  { bench: 'invoke', metric: 'errors64', bound: 'at most', value: 0 },
  { bench: 'invoke', metric: 'mixRatio', bound: 'at least', value: 0.9 },
  { bench: 'invoke', metric: 'functionCpuSPer1000.nodejs', bound: 'at most', value: 0.05 },
  { bench: 'invoke', metric: 'functionCpuSPer1000.python', bound: 'at most', value: 0.07 },
  { bench: 'invoke', metric: 'serverCpuSPer1000.c64', bound: 'at most', value: 0.11 },
  { bench: 'invoke', metric: 'firstTenSecondsRatio', bound: 'at least', value: 0.7 },
  { bench: 'invoke', metric: 'loadedAnonMiB', bound: 'at most', value: 160 },
  { bench: 'invoke', metric: 'mixColdStarts', bound: 'at most', value: 0 },
  { bench: 'invoke', metric: 'asyncPerS', bound: 'at least', value: 8000 },
  { bench: 'invoke', metric: 'asyncMissing', bound: 'at most', value: 0 },
  { bench: 'cold', metric: 'coldMs.nodejs', bound: 'at most', value: 30 },
  { bench: 'cold', metric: 'coldMs.python', bound: 'at most', value: 25 },
  { bench: 'cold', metric: 'stemMs.nodejs', bound: 'at most', value: 3 },
  { bench: 'cold', metric: 'stemMs.python', bound: 'at most', value: 3 },
  { bench: 'kit', metric: 'gpuDay.simulatedS', bound: 'at most', value: 240, source: 'docs/gpu-day.md' },
  { bench: 'kit', metric: 'gpuDay.archiveMiB', bound: 'at most', value: 60, source: 'docs/gpu-day.md' },
  { bench: 'dev', metric: 'devReloadMs.nodejs', bound: 'at most', value: 200 },
  { bench: 'dev', metric: 'devReloadMs.python', bound: 'at most', value: 200 },
  { bench: 'footprint', metric: 'readyMs', bound: 'at most', value: 450 },
  { bench: 'footprint', metric: 'rssMiB', bound: 'at most', value: 120 },
  { bench: 'footprint', metric: 'list20kMs', bound: 'at most', value: 20 },
  { bench: 'fresh', metric: 'buildS', bound: 'at most', value: 20 },
  { bench: 'fresh', metric: 'readyFreshS', bound: 'at most', value: 40 },
  { bench: 'fresh', metric: 'readyAgainS', bound: 'at most', value: 1.5 },
  { bench: 'console', metric: 'firstPaintMs', bound: 'at most', value: 1000 },
  { bench: 'console', metric: 'browserCpu', bound: 'at most', value: 0.1 },
  { bench: 'console', metric: 'controllerCpu', bound: 'at most', value: 0.02 },
  { bench: 'console', metric: 'bundleKB', bound: 'at most', value: 400 },
  { bench: 'inference', metric: 'inferenceSpeedup', bound: 'at least', value: 200 },
  { bench: 'inference', metric: 'firstRequestSpeedup', bound: 'at least', value: 3 },
  { bench: 'surface', metric: 'webRatio', bound: 'at most', value: 1.1 },
  { bench: 'surface', metric: 'webErrors', bound: 'at most', value: 0 },
  { bench: 'surface', metric: 'sequenceRatio', bound: 'at most', value: 3.3 },
  { bench: 'surface', metric: 'sequenceErrors', bound: 'at most', value: 0 },
  { bench: 'surface', metric: 'trigger100Ms', bound: 'at most', value: 250 },
  { bench: 'surface', metric: 'migratePerS', bound: 'at least', value: 400 },
  { bench: 'inject', metric: 'nativeMs', bound: 'at most', value: 0.4 },
  { bench: 'inject', metric: 'nativeP99Ratio', bound: 'at most', value: 4 },
  { bench: 'inject', metric: 'rollbackMs', bound: 'at most', value: 2 },
  { bench: 'inject', metric: 'leakMiB', bound: 'at most', value: 1 },
  { bench: 'inject', metric: 'slowdown100k', bound: 'at most', value: 0.1 },
  { bench: 'inject', metric: 'javaMs', bound: 'at most', value: 0.7 },
  { bench: 'inject', metric: 'javaP99Ms', bound: 'at most', value: 10 },
  { bench: 'inject', metric: 'javaLeakMiB', bound: 'at most', value: 64 },
  { bench: 'inject', metric: 'javaSlowdown20k', bound: 'at most', value: 0.1 },
  { bench: 'inject', metric: 'nodejsMs', bound: 'at most', value: 0.6 },
  { bench: 'inject', metric: 'nodejsP99Ms', bound: 'at most', value: 10 },
  { bench: 'inject', metric: 'nodejsLeakMiB', bound: 'at most', value: 64 },
  { bench: 'inject', metric: 'nodejsSlowdown20k', bound: 'at most', value: 0.1 },
  { bench: 'inject', metric: 'pythonMs', bound: 'at most', value: 0.25 },
  { bench: 'inject', metric: 'pythonP99Ratio', bound: 'at most', value: 4 },
  { bench: 'inject', metric: 'error50Speedup', bound: 'at least', value: 20 },
  { bench: 'inject', metric: 'error90Speedup', bound: 'at least', value: 20 },
  { bench: 'agent', metric: 'agentCpu', bound: 'at most', value: 0.01 },
  { bench: 'cudasim', metric: 'share50Error', bound: 'at most', value: 0.05 },
  { bench: 'cudasim', metric: 'share30Error', bound: 'at most', value: 0.05 },
  { bench: 'cudasim', metric: 'memoryErrorBytes', bound: 'at most', value: 0 },
  { bench: 'cudasim', metric: 'clientsAdmitted', bound: 'at least', value: 48 },
  { bench: 'tokens', metric: 'launchNs', bound: 'at most', value: 120 },
  { bench: 'tokens', metric: 'launchLoss', bound: 'at most', value: 0.03 },
  { bench: 'tokens', metric: 'computeLoss', bound: 'at most', value: 0.005 },
  { bench: 'tokens', metric: 'tokenUs', bound: 'at most', value: 50 },
  { bench: 'tokens', metric: 'tickJitterMs', bound: 'at most', value: 0.2 },
  { bench: 'order', metric: 'order120Ms', bound: 'at most', value: 5 },
  { bench: 'order', metric: 'arrivalUs', bound: 'at most', value: 200 },
  { bench: 'order', metric: 'jain', bound: 'at least', value: 0.95 },
  { bench: 'order', metric: 'floodP99Ratio', bound: 'at most', value: 1.25 },
  { bench: 'decide', metric: 'decisionUs.8', bound: 'at most', value: 5 },
  { bench: 'decide', metric: 'decisionUs.1024', bound: 'at most', value: 50 },
  { bench: 'decide', metric: 'decisionUs.1024fast', bound: 'at most', value: 20 },
  { bench: 'decide', metric: 'decisionRatio.10000fast', bound: 'at most', value: 2 },
  { bench: 'decide', metric: 'firstFitLost.1024fast', bound: 'at most', value: 0.01 },
  { bench: 'decide', metric: 'firstFitLost.10000fast', bound: 'at most', value: 0.01 },
  { bench: 'decide', metric: 'place3200Ms', bound: 'at most', value: 100 },
  { bench: 'decide', metric: 'placeUs', bound: 'at most', value: 50 },
  { bench: 'decide', metric: 'diluDevicesOverBest', bound: 'at most', value: 0 },
  { bench: 'view', metric: 'view4000Cpu', bound: 'at most', value: 0.25 },
  { bench: 'view', metric: 'view4000MiB', bound: 'at most', value: 512 },
  { bench: 'decide', metric: 'proteanPlaceUs', bound: 'at most', value: 10 },
  { bench: 'decide', metric: 'proteanOrderUs', bound: 'at most', value: 100 },
  { bench: 'decide', metric: 'smoreDecisionUs.8', bound: 'at most', value: 10 },
  { bench: 'decide', metric: 'smoreDecisionUs.1024', bound: 'at most', value: 200 },
  { bench: 'decide', metric: 'smoreDecisionUs.1024fast', bound: 'at most', value: 20 },
  { bench: 'decide', metric: 'smoreDecisionUs.10000fast', bound: 'at most', value: 20 },
  { bench: 'live', metric: 'liveJctRatio', bound: 'at most', value: 1.1 },
  { bench: 'live', metric: 'liveJctRatio', bound: 'at least', value: 0.9 },
  { bench: 'cluster', metric: 'clusterAddedP50Ms', bound: 'at most', value: 6 },
  { bench: 'cluster', metric: 'clusterRatio64', bound: 'at least', value: 0.45 },
  { bench: 'cluster', metric: 'clusterFirstTenSecondsRatio', bound: 'at least', value: 0.7 },
  { bench: 'cluster', metric: 'clusterErrors', bound: 'at most', value: 0 },
  { bench: 'cluster', metric: 'lost', bound: 'at most', value: 0 },
  { bench: 'cluster', metric: 'storeLagS', bound: 'at most', value: 2 },
  { bench: 'cluster', metric: 'recoverS', bound: 'at most', value: 15 },
  { bench: 'cluster', metric: 'othersRecoverS', bound: 'at most', value: 5 },
  { bench: 'cluster', metric: 'handoverS', bound: 'at most', value: 3 },
  { bench: 'cluster', metric: 'handoverDoubled', bound: 'at most', value: 0 },
  ...neighbourBar('neighbourP99Over', 1.5),
  ...neighbourBar('longestPauseMs', 50),
];

/** All bars, for a machine of two cores. The document of a bar that names none is that of its bench. */
export const bars: readonly Bar[] = documented.map((bar) => ({ source: section(bar.bench), ...bar }));

/** Whether `value` reaches the bar. */
export function reaches(bar: Bar, value: number): boolean {
  return bar.bound === 'at least' ? value >= bar.value : value <= bar.value;
}

/** Those of `all` for `bench` that `metrics` misses; an absent figure misses its bar unless the bar is pending. */
export function missedBars(all: readonly Bar[], bench: string, metrics: Readonly<Record<string, number>>): Bar[] {
  return all.filter((bar) => {
    const value = metrics[bar.metric];
    if (bar.bench !== bench || bar.isPending === true) return false;
    return value === undefined || !reaches(bar, value);
  });
}
