/** A bound that a figure must reach. */
export interface Bar {
  bench: string;
  metric: string;
  bound: 'at least' | 'at most';
  value: number;
  /** Document or decision that sets the bar. */
  source: string;
}

const source = 'issue 2';

/** All bars, for a machine of two cores. */
export const bars: readonly Bar[] = [
  { bench: 'invoke', metric: 'addedP50Ms', bound: 'at most', value: 0.5, source },
  { bench: 'invoke', metric: 'ratio64', bound: 'at least', value: 0.15, source },
  { bench: 'invoke', metric: 'ratio64Concurrent', bound: 'at least', value: 0.2, source },
  { bench: 'invoke', metric: 'errors64', bound: 'at most', value: 0, source },
  { bench: 'invoke', metric: 'mixRatio', bound: 'at least', value: 0.8, source },
  { bench: 'invoke', metric: 'mixColdStarts', bound: 'at most', value: 0, source },
  { bench: 'invoke', metric: 'asyncPerS', bound: 'at least', value: 4000, source },
  { bench: 'invoke', metric: 'asyncMissing', bound: 'at most', value: 0, source },
  { bench: 'cold', metric: 'coldMs.nodejs', bound: 'at most', value: 130, source },
  { bench: 'cold', metric: 'coldMs.python', bound: 'at most', value: 70, source },
  { bench: 'cold', metric: 'stemMs.nodejs', bound: 'at most', value: 10, source },
  { bench: 'cold', metric: 'stemMs.python', bound: 'at most', value: 10, source },
  { bench: 'footprint', metric: 'readyMs', bound: 'at most', value: 2000, source },
  { bench: 'footprint', metric: 'rssMiB', bound: 'at most', value: 120, source },
  { bench: 'footprint', metric: 'list20kMs', bound: 'at most', value: 20, source },
  { bench: 'inference', metric: 'inferenceSpeedup', bound: 'at least', value: 200, source: 'issue 4' },
  { bench: 'inference', metric: 'firstRequestSpeedup', bound: 'at least', value: 3, source: 'issue 4' },
  { bench: 'surface', metric: 'webRatio', bound: 'at most', value: 1.1, source: 'issue 3' },
  { bench: 'surface', metric: 'webErrors', bound: 'at most', value: 0, source: 'issue 3' },
  { bench: 'surface', metric: 'sequenceRatio', bound: 'at most', value: 3.3, source: 'issue 3' },
  { bench: 'surface', metric: 'sequenceErrors', bound: 'at most', value: 0, source: 'issue 3' },
  { bench: 'surface', metric: 'trigger100Ms', bound: 'at most', value: 250, source: 'issue 3' },
  { bench: 'surface', metric: 'migratePerS', bound: 'at least', value: 400, source: 'issue 3' },
  { bench: 'inject', metric: 'nativeMs', bound: 'at most', value: 0.7, source: 'issue 4' },
  { bench: 'inject', metric: 'nativeP99Ratio', bound: 'at most', value: 4, source: 'issue 4' },
  { bench: 'inject', metric: 'rollbackMs', bound: 'at most', value: 2, source: 'issue 4' },
  { bench: 'inject', metric: 'leakMiB', bound: 'at most', value: 1, source: 'issue 4' },
  { bench: 'inject', metric: 'slowdown100k', bound: 'at most', value: 0.1, source: 'issue 4' },
  { bench: 'inject', metric: 'javaMs', bound: 'at most', value: 2, source: 'issue 4' },
  { bench: 'inject', metric: 'javaP99Ms', bound: 'at most', value: 10, source: 'issue 4' },
  { bench: 'inject', metric: 'javaLeakMiB', bound: 'at most', value: 64, source: 'issue 4' },
  { bench: 'inject', metric: 'javaSlowdown20k', bound: 'at most', value: 0.1, source: 'issue 4' },
  { bench: 'inject', metric: 'nodejsMs', bound: 'at most', value: 1, source: 'issue 4' },
  { bench: 'inject', metric: 'nodejsP99Ms', bound: 'at most', value: 10, source: 'issue 4' },
  { bench: 'inject', metric: 'nodejsLeakMiB', bound: 'at most', value: 64, source: 'issue 4' },
  { bench: 'inject', metric: 'nodejsSlowdown20k', bound: 'at most', value: 0.1, source: 'issue 4' },
  { bench: 'inject', metric: 'pythonMs', bound: 'at most', value: 0.7, source: 'issue 4' },
  { bench: 'inject', metric: 'pythonP99Ratio', bound: 'at most', value: 4, source: 'issue 4' },
  { bench: 'inject', metric: 'error50Speedup', bound: 'at least', value: 20, source: 'issue 4' },
  { bench: 'inject', metric: 'error90Speedup', bound: 'at least', value: 20, source: 'issue 4' },
  { bench: 'agent', metric: 'agentCpu', bound: 'at most', value: 0.01, source: 'issue 5' },
  { bench: 'cudasim', metric: 'share50Error', bound: 'at most', value: 0.05, source: 'issue 5' },
  { bench: 'cudasim', metric: 'share30Error', bound: 'at most', value: 0.05, source: 'issue 5' },
  { bench: 'cudasim', metric: 'memoryErrorBytes', bound: 'at most', value: 0, source: 'issue 5' },
  { bench: 'cudasim', metric: 'clientsAdmitted', bound: 'at least', value: 48, source: 'issue 5' },
  { bench: 'tokens', metric: 'launchNs', bound: 'at most', value: 120, source: 'issue 5' },
  { bench: 'tokens', metric: 'launchLoss', bound: 'at most', value: 0.03, source: 'issue 5' },
  { bench: 'tokens', metric: 'computeLoss', bound: 'at most', value: 0.005, source: 'issue 5' },
  { bench: 'tokens', metric: 'tokenUs', bound: 'at most', value: 50, source: 'issue 5' },
  { bench: 'tokens', metric: 'tickJitterMs', bound: 'at most', value: 0.2, source: 'issue 5' },
  { bench: 'order', metric: 'order120Ms', bound: 'at most', value: 5, source: 'issue 6' },
  { bench: 'order', metric: 'arrivalUs', bound: 'at most', value: 200, source: 'issue 6' },
  { bench: 'order', metric: 'jain', bound: 'at least', value: 0.95, source: 'issue 6' },
  { bench: 'order', metric: 'floodP99Ratio', bound: 'at most', value: 1.25, source: 'issue 6' },
  { bench: 'decide', metric: 'decisionUs.8', bound: 'at most', value: 5, source: 'issue 20' },
  { bench: 'decide', metric: 'decisionUs.1024', bound: 'at most', value: 50, source: 'issue 20' },
  { bench: 'decide', metric: 'decisionUs.1024fast', bound: 'at most', value: 20, source: 'issue 20' },
  { bench: 'decide', metric: 'decisionRatio.10000fast', bound: 'at most', value: 2, source: 'issue 20' },
  { bench: 'decide', metric: 'firstFitLost.1024fast', bound: 'at most', value: 0.01, source: 'issue 20' },
  { bench: 'decide', metric: 'firstFitLost.10000fast', bound: 'at most', value: 0.01, source: 'issue 20' },
  { bench: 'decide', metric: 'place3200Ms', bound: 'at most', value: 100, source: 'issue 20' },
  { bench: 'decide', metric: 'placeUs', bound: 'at most', value: 50, source: 'issue 20' },
  { bench: 'decide', metric: 'diluDevicesOverBest', bound: 'at most', value: 0, source: 'issue 20' },
  { bench: 'view', metric: 'view4000Cpu', bound: 'at most', value: 0.25, source: 'issue 20' },
  { bench: 'view', metric: 'view4000MiB', bound: 'at most', value: 512, source: 'issue 20' },
  { bench: 'faashare', metric: 'waitOverBound', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'faashare', metric: 'overloadViolations', bound: 'at most', value: 0.05, source: 'issue 22' },
  { bench: 'faashare', metric: 'overloadJct', bound: 'at most', value: 1, source: 'issue 22' },
  { bench: 'faashare', metric: 'overloadBetter', bound: 'at most', value: 0, source: 'issue 22' },
  { bench: 'faashare', metric: 'jctGainShort', bound: 'at least', value: 0.2, source: 'issue 22' },
  { bench: 'faashare', metric: 'jctGainShortEqualHigh', bound: 'at least', value: 0, source: 'issue 22' },
  { bench: 'faashare', metric: 'makespanGainIdlePart', bound: 'at least', value: 0.5, source: 'issue 22' },
  { bench: 'faashare', metric: 'jctGainIdlePart', bound: 'at least', value: 0.5, source: 'issue 22' },
  { bench: 'smore', metric: 'wasteRatio.bursty.keepAlive1', bound: 'at most', value: 0.9, source: 'issue 23' },
  { bench: 'smore', metric: 'wasteRatio.bursty.keepAlive2', bound: 'at most', value: 0.9, source: 'issue 23' },
  { bench: 'smore', metric: 'wasteRatio.bursty.keepAlive5', bound: 'at most', value: 0.9, source: 'issue 23' },
  { bench: 'smore', metric: 'wasteRatio.bursty.keepAlive10', bound: 'at most', value: 0.9, source: 'issue 23' },
  { bench: 'smore', metric: 'wasteRatio.bursty.hhp', bound: 'at most', value: 0.9, source: 'issue 23' },
  { bench: 'smore', metric: 'wasteRatio.bursty.lsth', bound: 'at most', value: 0.9, source: 'issue 23' },
  { bench: 'smore', metric: 'coldRateOverMost.bursty', bound: 'at most', value: 0, source: 'issue 23' },
  { bench: 'smore', metric: 'coldRate.regular.smore', bound: 'at most', value: 0.01, source: 'issue 23' },
  { bench: 'smore', metric: 'wasteRatio.regular', bound: 'at most', value: 1, source: 'issue 23' },
  { bench: 'smore', metric: 'forecast10kS', bound: 'at most', value: 2, source: 'issue 23' },
  { bench: 'quota', metric: 'boGap', bound: 'at most', value: 0.03, source: 'issue 6' },
  { bench: 'quota', metric: 'boEvaluations', bound: 'at most', value: 7, source: 'issue 6' },
  { bench: 'quota', metric: 'tableHitUs', bound: 'at most', value: 5, source: 'issue 6' },
  { bench: 'predictor', metric: 'predictUs', bound: 'at most', value: 10, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsRidge.gavelP100.pair', bound: 'at most', value: 0.85, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsRidge.gavelV100.pair', bound: 'at most', value: 0.75, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsRidge.lucid3090.pair', bound: 'at most', value: 0.75, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsRidge.igniterV100.pair', bound: 'at most', value: 0.75, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsRidge.igniterV100Share.pair', bound: 'at most', value: 0.75, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsNearest3.gavelP100.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsNearest3.gavelV100.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsNearest3.lucid3090.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsNearest3.igniterV100.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsNearest3.igniterV100Share.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsConstant.gavelP100.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsConstant.gavelV100.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsConstant.lucid3090.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsConstant.igniterV100.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'predictor', metric: 'maeVsConstant.igniterV100Share.pair', bound: 'at most', value: 1, source: 'issue 6' },
  { bench: 'live', metric: 'liveJctRatio', bound: 'at most', value: 1.1, source: 'issue 6' },
  { bench: 'live', metric: 'liveJctRatio', bound: 'at least', value: 0.9, source: 'issue 6' },
  { bench: 'cluster', metric: 'clusterAddedP50Ms', bound: 'at most', value: 6, source: 'issue 7' },
  { bench: 'cluster', metric: 'clusterRatio64', bound: 'at least', value: 0.25, source: 'issue 7' },
  { bench: 'cluster', metric: 'clusterErrors', bound: 'at most', value: 0, source: 'issue 7' },
  { bench: 'cluster', metric: 'lost', bound: 'at most', value: 0, source: 'issue 7' },
  { bench: 'cluster', metric: 'storeLagS', bound: 'at most', value: 2, source: 'issue 7' },
  { bench: 'cluster', metric: 'recoverS', bound: 'at most', value: 15, source: 'issue 7' },
  { bench: 'cluster', metric: 'othersRecoverS', bound: 'at most', value: 5, source: 'issue 7' },
  { bench: 'cluster', metric: 'handoverS', bound: 'at most', value: 3, source: 'issue 7' },
  { bench: 'cluster', metric: 'handoverDoubled', bound: 'at most', value: 0, source: 'issue 7' },
  { bench: 'predictor', metric: 'choiceRegret', bound: 'at most', value: 0.03, source: 'issue 6' },
];

/** Whether `value` reaches the bar. */
export function reaches(bar: Bar, value: number): boolean {
  return bar.bound === 'at least' ? value >= bar.value : value <= bar.value;
}

/** The bars of `bench` that `metrics` misses; an absent figure misses its bar. */
export function missedBars(bench: string, metrics: Readonly<Record<string, number>>): Bar[] {
  return bars.filter((bar) => {
    const value = metrics[bar.metric];
    return bar.bench === bench && (value === undefined || !reaches(bar, value));
  });
}
