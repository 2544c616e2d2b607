// Slowdown samples, and training of predictors on them.
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { JobHandler, Jobs } from '@gpuwhisk/common/jobs/jobs';
import { runInWorker } from '@gpuwhisk/common/jobs/worker-run';
import type { Logger } from '@gpuwhisk/common/logging';
import { decodeModel, encodeModel, leastSamples } from '@gpuwhisk/gpu/predict/slowdown-model';
import { trainingModule } from '@gpuwhisk/gpu/predict/train-worker';
import type { TrainingInput, TrainingOutput } from '@gpuwhisk/gpu/predict/train-worker';
import type { TrainingSetState, SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import type { Random } from '@gpuwhisk/common/system/random';
import { TrainingSet } from '@gpuwhisk/gpu/predict/samples';
import type { PerformanceData } from './performance-data.js';

/** The kind of job that retrains a predictor. */
const retrainingKind = 'slowdown-model';

/** Dependencies of Retraining. */
interface RetrainingParts {
  performanceData: PerformanceData;
  jobs: Jobs;
  logger: Logger;
  /** Trains a model in a thread; tests replace it. */
  run?: typeof runInWorker;
}

/** Least number of held-out samples for a valid comparison. */
const leastHeldOut = 5;
/** Least number of new samples before the next training, absolute and as a part of all samples. */
const leastFresh = 20;
const freshPart = 0.25;
const timeoutMs = 10 * 60_000;

/** Retrains predictors in background jobs when there are enough new samples. */
export class Retraining {
  /** Kinds of GPUs with a pending job. */
  private readonly asked = new Set<string>();
  private handler: JobHandler | undefined;

  constructor(private readonly parts: RetrainingParts) {
    parts.performanceData.runs.onAdded((key) => this.sampled(key));
  }

  /** Begins to run jobs here, including those of earlier processes. */
  open(): void {
    const { jobs, performanceData } = this.parts;
    this.handler ??= jobs.handle(retrainingKind, { concurrency: 1, timeoutMs }, (payload, { signal }) =>
      this.retrain(payload as unknown as GpuKind, signal),
    );
    // Another controller may have measured enough already.
    for (const key of performanceData.runs.kinds()) this.sampled(key);
  }

  /** Ends the jobs here, as another controller now writes the performance data. */
  async close(): Promise<void> {
    const { handler } = this;
    this.handler = undefined;
    await handler?.close();
  }

  private sampled(key: GpuKind): void {
    const name = kindName(key);
    if (this.asked.has(name) || !isDue(this.parts.performanceData.runs.of(key).state())) return;
    this.asked.add(name);
    const { gpuType, mode } = key;
    this.parts.jobs
      .submit({ kind: retrainingKind, key: name, payload: { gpuType, mode } })
      .catch((error: unknown) =>
        // The next sample requests the job again.
        this.parts.logger.info({ gpuType, mode, reason: String(error) }, 'a predictor was not retrained'),
      )
      .finally(() => this.asked.delete(name));
  }

  /** The body of a job. The new model is dropped if it predicts held-out samples worse than the model in force. */
  private async retrain({ gpuType, mode }: GpuKind, signal: AbortSignal): Promise<void> {
    const { performanceData, logger, run = runInWorker } = this.parts;
    const key = { gpuType, mode };
    const set = performanceData.runs.of(key);
    const { training, heldOut, fresh } = set.state();
    if (training.samples.length < leastSamples || heldOut.samples.length < leastHeldOut) return;
    const before = performanceData.predictors.model(key);
    const version = (before?.version ?? 0) + 1;
    const input: TrainingInput = {
      ...key,
      version,
      seed: version,
      training: training.samples,
      heldOut: heldOut.samples,
      ...(before !== undefined && { inForce: encodeModel(before) }),
    };
    const given = await run(trainingModule, input as unknown as JsonValue, signal);
    const { model: text, miss, missInForce } = given as unknown as TrainingOutput;
    const model = decodeModel(text);
    const isOfKey = model.gpuType === gpuType && model.mode === mode && model.version === version;
    if (!isOfKey) throw new Error('the training returned a model of another kind of GPU');
    const isTaken = miss <= missInForce && performanceData.put(model);
    performanceData.metrics.trained(isTaken ? 'taken' : 'refused');
    logger.info({ gpuType, mode, version, miss, missInForce, isTaken }, 'a predictor was retrained');
    set.fresh -= fresh;
    performanceData.runs.changed(key);
  }
}

/** Whether enough samples are new since the last model. */
function isDue({ training, heldOut, fresh }: TrainingSetState): boolean {
  const count = training.samples.length;
  const isEnough = count >= leastSamples && heldOut.samples.length >= leastHeldOut;
  return isEnough && fresh >= Math.max(leastFresh, freshPart * count);
}

/** Slowdown samples for the training of predictors, by kind of GPU. */
export class SlowdownSamples {
  private readonly byName = new Map<string, { key: GpuKind; set: TrainingSet }>();
  private listener: (key: GpuKind) => void = () => undefined;

  /** `keep` is called with a changed kind of GPU and the function that returns its text. */
  constructor(
    private readonly random: Random,
    private readonly keep: (key: GpuKind, text: () => string) => void,
  ) {}

  /** Adds a run; returns the reason if it is refused. */
  add(key: GpuKind, sample: SlowdownSample): string | undefined {
    const refused = this.of(key).add(sample);
    if (refused !== undefined) return refused;
    this.changed(key);
    this.listener(key);
    return undefined;
  }

  /** Calls `listener` for every added run. */
  onAdded(listener: (key: GpuKind) => void): void {
    this.listener = listener;
  }

  /** Kinds of GPUs with samples. */
  kinds(): GpuKind[] {
    return Array.from(this.byName.values(), ({ key }) => key);
  }

  /** The samples of a kind of GPU. */
  of({ gpuType, mode }: GpuKind): TrainingSet {
    const key = { gpuType, mode };
    const known = this.byName.get(kindName(key));
    if (known !== undefined) return known.set;
    const set = new TrainingSet(this.random);
    this.byName.set(kindName(key), { key, set });
    return set;
  }

  /** Notes a change of the samples of a kind of GPU. */
  changed({ gpuType, mode }: GpuKind): void {
    const key = { gpuType, mode };
    this.keep(key, () => JSON.stringify({ ...key, state: this.of(key).state() }));
  }

  /** Restores stored samples and merges them with newer ones (`isChanged`). */
  restore(text: string, isChanged: boolean): void {
    const { gpuType, mode, state } = JSON.parse(text) as GpuKind & { state: TrainingSetState };
    const key = { gpuType, mode };
    const set = new TrainingSet(this.random, state);
    const since = this.byName.get(kindName(key))?.set;
    if (isChanged && since !== undefined) set.addAll(since.state());
    this.byName.set(kindName(key), { key, set });
  }

  /** Deletes the samples of a kind of GPU, `gpuType/mode`. Returns whether there were any. */
  forget(name: string): boolean {
    return this.byName.delete(name);
  }
}
