// Training of pair models in background jobs.
import type { JsonValue } from '@gpuwhisk/common/json';
import type { JobHandler, Jobs } from '@gpuwhisk/common/jobs/jobs';
import { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { Logger } from '@gpuwhisk/common/logging';
import { every } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { pairModelName } from '@gpuwhisk/gpu/predict/pair-degradation';
import type { PairModelKey } from '@gpuwhisk/gpu/predict/pair-degradation';
import { pairTrainingModule } from '@gpuwhisk/gpu/predict/pair-training';
import type { PairTrainingOutput } from '@gpuwhisk/gpu/predict/pair-training';
import type { PerformanceData } from './performance-data.js';

/** The kind of job that trains a pair model. */
const trainingKind = 'pair-model';
const checkMs = 10 * 60_000;
const timeoutMs = 10 * 60_000;

/** Dependencies of PairTraining. */
interface PairTrainingParts {
  performanceData: Pick<PerformanceData, 'pairs' | 'degradations' | 'metrics'>;
  jobs: Pick<Jobs, 'submit' | 'handle'>;
  clock: Clock;
  logger: Logger;
  /** Trains a model in a thread; tests replace it. */
  run?: typeof runInWorker;
}

/** Trains pair models when there are enough pairs, and again when enough new ones or a day have come. */
export class PairTraining {
  /** Kinds of pairs whose job is being submitted. */
  private readonly asked = new Set<string>();
  private handler: JobHandler | undefined;
  private timer: Timer | undefined;

  constructor(private readonly parts: PairTrainingParts) {
    parts.performanceData.pairs.onAdded((key) => {
      if (parts.performanceData.pairs.isDue(key)) this.submit(key);
    });
  }

  /** Begins to run jobs here, including those of earlier processes. */
  open(): void {
    this.handler ??= this.parts.jobs.handle(trainingKind, { concurrency: 1, timeoutMs }, (payload, { signal }) =>
      this.train(payload as unknown as PairModelKey, signal),
    );
    this.check();
    this.timer?.cancel();
    this.timer = every(this.parts.clock, checkMs, () => this.check());
  }

  /** Ends the jobs here. */
  async close(): Promise<void> {
    this.timer?.cancel();
    const { handler } = this;
    this.handler = undefined;
    await handler?.close();
  }

  private check(): void {
    const { pairs, degradations } = this.parts.performanceData;
    for (const key of pairs.due()) this.submit(key);
    // Workloads and functions have come since the last training.
    degradations.precompute();
  }

  private submit({ gpuType, mode, victim, neighbour }: PairModelKey): void {
    const key = pairModelName({ gpuType, mode, victim, neighbour });
    // Another controller may be the leader, which trains.
    if (this.handler === undefined || this.asked.has(key)) return;
    this.asked.add(key);
    this.parts.jobs
      .submit({ kind: trainingKind, key, payload: { gpuType, mode, victim, neighbour } })
      .catch((error: unknown) =>
        // The next measurement or check requests the job again.
        this.parts.logger.info({ pairs: key, reason: String(error) }, 'a model of pairs was not trained'),
      )
      .finally(() => this.asked.delete(key));
  }

  /** The body of a job. */
  private async train(key: PairModelKey, signal: AbortSignal): Promise<void> {
    const { performanceData, logger, run = runInWorker } = this.parts;
    const training = performanceData.pairs.training(key);
    if (training === undefined) return;
    const given = await run(pairTrainingModule, training.input as unknown as JsonValue, signal);
    const output = given as unknown as PairTrainingOutput;
    const isUsed = performanceData.pairs.trained(training, output);
    performanceData.metrics.pairsTrained(isUsed ? 'taken' : 'refused');
    const { version, samples } = training.input;
    const { model, figures, constant } = output.judgement ?? {};
    const errors = { rmsle: model?.rmsle, rmsleOfFigures: figures?.rmsle, rmsleOfConstant: constant?.rmsle };
    logger.info(
      { pairs: pairModelName(key), version, samples: samples.length, ...errors },
      isUsed
        ? 'a model of pairs was trained, and predicts'
        : 'a model of pairs was trained; figures predict on, as it errs no less',
    );
  }
}
