import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { QuotaChoice } from '@gpuwhisk/gpu/share/quotas';
import { answerOf, countSharing } from '@gpuwhisk/gpu/share/share-counts';
import type { Sharing } from '@gpuwhisk/gpu/view/decision';
import type { PerformanceData } from './performance-data.js';

/** Whether a measurement was accepted. */
export type Taken = 'taken' | 'refused';

/** Counters of learning. */
export interface LearningMetrics {
  /** Counts a measured run offered to the predictors. */
  runOffered(outcome: Taken): void;
  /** Counts a measured set offered to the table of shares. */
  setMeasured(outcome: Taken): void;
  /** Counts a retrained predictor; it is refused if it predicts worse than the one before. */
  trained(outcome: Taken): void;
  /** Counts an attempt to search for the shares of a set. */
  searched(outcome: 'done' | 'interrupted' | 'failed'): void;
  /** Counts a measured degradation of a pair offered to the models of pairs. */
  pairOffered(outcome: Taken): void;
  /** Counts a trained model of pairs; it is refused if it errs no less than figures alone. */
  pairsTrained(outcome: Taken): void;
  /** Counts an attempt to measure a pair of functions. */
  pairRun(outcome: 'done' | 'interrupted' | 'failed'): void;
  /** Counts an attempt to run the trials of a function. */
  profiled(outcome: 'done' | 'interrupted' | 'failed'): void;
  /** Counts a query of the table for the shares of a set. */
  asked(source: QuotaChoice['source']): void;
  /** Counts a choice of shares for tasks that are put together, and what the table's answer saved. */
  shared(sharing: Sharing): void;
}

/** The metrics of performance data, in `registry`. */
export function learningMetrics(registry: Registry, performanceData: PerformanceData): LearningMetrics {
  const registers = [registry];
  const samples = new Counter({
    name: 'gpuwhisk_gpu_samples_total',
    help: 'Measured runs beside others that were offered to the predictors',
    labelNames: ['outcome'],
    registers,
  });
  const sets = new Counter({
    name: 'gpuwhisk_gpu_measured_sets_total',
    help: 'Measured sets that were offered to the table of shares',
    labelNames: ['outcome'],
    registers,
  });
  const models = new Counter({
    name: 'gpuwhisk_gpu_models_total',
    help: 'Retrained predictors: taken, or refused as they predict worse',
    labelNames: ['outcome'],
    registers,
  });
  const choices = new Counter({
    name: 'gpuwhisk_gpu_quota_choices_total',
    help: 'Sets whose shares were asked for, by where they came from',
    labelNames: ['source'],
    registers,
  });
  const sharings = new Counter({
    name: 'gpuwhisk_gpu_sharings_total',
    help: 'Choices of shares for activations that are put together on a GPU, by answer of the table (hit, near, miss) and by the shares given (table or filling)',
    labelNames: ['answer', 'shares'],
    registers,
  });
  const sharingSeconds = new Counter({
    name: 'gpuwhisk_gpu_sharing_run_seconds_total',
    help: 'Sum of the times to the ends of activations that are put together, with the shares given (chosen) and with those that they fill (filling): measured on a hit, else predicted',
    labelNames: ['answer', 'shares'],
    registers,
  });
  const searches = new Counter({
    name: 'gpuwhisk_gpu_quota_searches_total',
    help: 'Attempts to search for the shares of a set on an idle GPU: done, interrupted by work, or failed',
    labelNames: ['outcome'],
    registers,
  });
  const pairs = new Counter({
    name: 'gpuwhisk_gpu_pair_samples_total',
    help: 'Measured degradations of pairs that were offered to the models of pairs',
    labelNames: ['outcome'],
    registers,
  });
  const pairModels = new Counter({
    name: 'gpuwhisk_gpu_pair_models_total',
    help: 'Trained models of pairs: taken, or refused as they err no less than figures alone',
    labelNames: ['outcome'],
    registers,
  });
  const pairRuns = new Counter({
    name: 'gpuwhisk_gpu_pair_measurements_total',
    help: 'Attempts to measure a pair of functions on an idle GPU: done, interrupted by work, or failed',
    labelNames: ['outcome'],
    registers,
  });
  const profilings = new Counter({
    name: 'gpuwhisk_gpu_profilings_total',
    help: 'Attempts to find request and limit of a function on an idle GPU: done, interrupted by work, or failed',
    labelNames: ['outcome'],
    registers,
  });
  new Gauge({
    name: 'gpuwhisk_gpu_drifting_pairs',
    help: 'Pairs whose measured degradations depart from the predicted ones',
    registers,
    collect() {
      this.set(performanceData.degradations.drifts().length);
    },
  });
  new Gauge({
    name: 'gpuwhisk_gpu_learned',
    help: 'Numbers of known functions, measured sets, predictors, measured pairs and models of pairs in force',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const [kind, count] of Object.entries(performanceData.counts())) this.set({ kind }, count);
    },
  });
  new Gauge({
    name: 'gpuwhisk_gpu_decision_bytes',
    help: 'Estimated size of the decisions that are kept for explanations',
    registers,
    collect() {
      this.set(performanceData.decisions.bytes);
    },
  });
  new Counter({
    name: 'gpuwhisk_gpu_learned_writes_total',
    help: 'Documents of performance data: saved, failed and to be written again, or dropped as too many waited or another controller is the leader',
    labelNames: ['outcome'],
    registers,
    collect() {
      this.reset();
      for (const [outcome, count] of Object.entries(performanceData.writes)) this.inc({ outcome }, count);
    },
  });
  return {
    runOffered: (outcome) => samples.inc({ outcome }),
    setMeasured: (outcome) => sets.inc({ outcome }),
    trained: (outcome) => models.inc({ outcome }),
    searched: (outcome) => searches.inc({ outcome }),
    pairOffered: (outcome) => pairs.inc({ outcome }),
    pairsTrained: (outcome) => pairModels.inc({ outcome }),
    pairRun: (outcome) => pairRuns.inc({ outcome }),
    profiled: (outcome) => profilings.inc({ outcome }),
    asked: (source) => choices.inc({ source }),
    shared: (sharing) => {
      const answer = answerOf(sharing);
      if (answer === undefined) return;
      const { source, chosenMs, fillingMs } = sharing;
      sharings.inc({ answer, shares: source === sharing.answer ? 'table' : 'filling' });
      sharingSeconds.inc({ answer, shares: 'chosen' }, chosenMs / 1000);
      sharingSeconds.inc({ answer, shares: 'filling' }, fillingMs / 1000);
      countSharing(performanceData.shareCounts, sharing);
    },
  };
}
