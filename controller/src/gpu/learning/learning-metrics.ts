import { Counter, Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import type { QuotaChoice } from '@gpuwhisk/gpu/share/quotas';
import { answerOf, countSharing } from '@gpuwhisk/gpu/share/share-counts';
import type { Sharing } from '@gpuwhisk/gpu/view/decision';
import type { PerformanceData } from './performance-data.js';

/** Whether a measurement was accepted. */
export type Taken = 'taken' | 'refused';

/** Counters of measurements and models, by whether they were accepted: name and help text. */
const ofTaken = {
  runOffered: ['gpuwhisk_gpu_samples_total', 'Measured runs beside others that were offered to the predictors'],
  setMeasured: ['gpuwhisk_gpu_measured_sets_total', 'Measured sets that were offered to the table of shares'],
  trained: ['gpuwhisk_gpu_models_total', 'Retrained predictors: taken, or refused as they predict worse'],
  pairOffered: [
    'gpuwhisk_gpu_pair_samples_total',
    'Measured degradations of pairs that were offered to the models of pairs',
  ],
  pairsTrained: [
    'gpuwhisk_gpu_pair_models_total',
    'Trained models of pairs: taken, or refused as they err no less than figures alone',
  ],
} as const;

/** Counters of attempts of jobs on idle GPUs, by outcome: name, and what was attempted. */
const ofAttempts = {
  searched: ['gpuwhisk_gpu_quota_searches_total', 'search for the shares of a set'],
  pairRun: ['gpuwhisk_gpu_pair_measurements_total', 'measure a pair of functions'],
  profiled: ['gpuwhisk_gpu_profilings_total', 'find request and limit of a function'],
} as const;

/** How an attempt of a job ended. */
export type Outcome = 'done' | 'interrupted' | 'failed';

/** Counters of learning. */
export interface LearningMetrics
  extends
    Readonly<Record<keyof typeof ofTaken, (outcome: Taken) => void>>,
    Readonly<Record<keyof typeof ofAttempts, (outcome: Outcome) => void>> {
  /** Counts a query of the table for the shares of a set. */
  asked(source: QuotaChoice['source']): void;
  /** Counts a choice of shares for tasks that are put together, and what the table's answer saved. */
  shared(sharing: Sharing): void;
}

/** The metrics of performance data, in `registry`. */
export function learningMetrics(registry: Registry, performanceData: PerformanceData): LearningMetrics {
  const registers = [registry];
  const counter = <Label extends string>(name: string, help: string, ...labelNames: Label[]): Counter<Label> =>
    new Counter({ name, help, labelNames, registers });
  const outcomes = <Name extends string>(
    counters: Record<Name, readonly [string, string]>,
    helpOf = (what: string): string => what,
  ) =>
    Object.fromEntries(
      Object.entries<readonly [string, string]>(counters).map(([method, [name, what]]) => {
        const counted = counter(name, helpOf(what), 'outcome');
        return [method, (outcome: string) => counted.inc({ outcome })];
      }),
    ) as Record<Name, (outcome: string) => void>;
  const choices = counter(
    'gpuwhisk_gpu_quota_choices_total',
    'Sets whose shares were asked for, by where they came from',
    'source',
  );
  const sharings = counter(
    'gpuwhisk_gpu_sharings_total',
    'Choices of shares for activations that are put together on a GPU, by answer of the table (hit, near, miss) and by the shares given (table or filling)',
    'answer',
    'shares',
  );
  const sharingSeconds = counter(
    'gpuwhisk_gpu_sharing_run_seconds_total',
    'Sum of the times to the ends of activations that are put together, with the shares given (chosen) and with those that they fill (filling): measured on a hit, else predicted',
    'answer',
    'shares',
  );
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
    name: 'gpuwhisk_gpu_tried_sets',
    help: 'Sets of best-effort functions that were tried together, by state: trying, stays or split',
    labelNames: ['state'],
    registers,
    collect() {
      const counts = { trying: 0, stays: 0, split: 0 };
      for (const { state } of performanceData.setTrials.all()) counts[state] += 1;
      for (const [state, count] of Object.entries(counts)) this.set({ state }, count);
    },
  });
  new Gauge({
    name: 'gpuwhisk_gpu_trial_lost_part',
    help: 'Work that trials of sets have lost against turns in the ten minutes before the last run, as a part of the time that GPUs were busy',
    registers,
    collect() {
      const { lostMs, busyMs } = performanceData.setTrials.costs();
      this.set(busyMs > 0 ? lostMs / busyMs : 0);
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
    ...outcomes(ofTaken),
    ...outcomes(ofAttempts, (what) => `Attempts to ${what} on an idle GPU: done, interrupted by work, or failed`),
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
