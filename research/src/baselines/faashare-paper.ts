// FaaShare as published: algorithm 1, then shares of the table and its Bayesian optimisation, predicted by the paper's forest.
import { kindName } from '@gpuwhisk/common/gpu';
import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { SubQueue } from '@gpuwhisk/gpu/algorithms/faashare/sub-queue';
import { predictForest, trainForest } from '@gpuwhisk/gpu/predict/forest';
import { sampleFault } from '@gpuwhisk/gpu/predict/samples';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { faashareFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { CoLocated, SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { StageNeeds } from '@gpuwhisk/gpu/plugin';
import { guardrail, jobOf } from '@gpuwhisk/gpu/share/quotas';
import type { Quotas } from '@gpuwhisk/gpu/share/quotas';
import type { Planner } from '@gpuwhisk/gpu/stages/order/plan';
import { PredictionCache } from '@gpuwhisk/gpu/stages/order/set-predictions';
import type { PolicyRecord } from '@gpuwhisk/gpu/stages/policy-record';
import { averageNeighbours, steadyNeighbours } from '@gpuwhisk/gpu/stages/profile/run-log';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import type { Task } from '@gpuwhisk/gpu/view/view';
import { faashareForest } from './faashare-forest.js';
import { literalPlan } from './literal-plan.js';

/**
 * FaaShare: algorithm 1 as printed (section VI), then the shares of the table of measured sets for all that starts on a GPU
 * (section VII-B; a search by Bayesian optimisation is the platform's, which fills the table), by predictions of the paper's
 * forest (section V).
 *
 * Simplified: the paper trains its forest ahead on 800 sets of its own workloads. Here it learns from runs as they end, and the
 * platform's predictor stands in for it until `leastRuns` have. Without a table the shares are the guardrail's.
 */
export const faasharePaper: PolicyRecord = {
  summary: "FaaShare's algorithm 1 to the letter, then shares of the table, by the paper's forest",
  admit: 'always',
  plan: 'sub-queues-paper',
};

/** Runs that a forest is learned from at least. */
export const leastRuns = 100;
/** The newest runs that are kept of a kind of GPU. Training takes seconds: a split by absolute error tries every threshold. */
const mostRuns = 400;

/** Assumed of a neighbour without figures. */
const unseen = { smUtil: 1, dramUtil: 1, l2Util: 1 };

/** The planner of `faashare-paper`. */
export function paperPlan({ predictorOf, quotas }: Pick<StageNeeds, 'predictorOf' | 'quotas'>): Planner {
  const forests = new PaperForests(predictorOf);
  const predictions = new PredictionCache((gpu) => forests.predictorOf(gpu));
  const table: Pick<Quotas, 'shareFor'> = quotas ?? {
    shareFor: (set, gpu, budgetsMs, fixed) => guardrail(set, budgetsMs, forests.predictorOf(gpu), fixed),
  };
  return {
    ...literalPlan(predictions, (queue) => sharesIn(queue, table)),
    observe: (run) => forests.observe(run),
    saved: () => forests.saved(),
    restore: (saved) => forests.restore(saved as SavedForests),
  };
}

/** The shares of a queue's members by the table, whatever is gained by them. SLOs are held against execution alone (equation 3). */
function sharesIn({ place, running, members }: SubQueue, table: Pick<Quotas, 'shareFor'>): number[] {
  const tasks = [...running, ...members].map(({ task }) => task);
  const budgetsMs = tasks.map(({ sloMs = Infinity }) => sloMs);
  const fixed = [...running.map(({ share }) => share), ...members.map(fixedShare)];
  const { shares } = table.shareFor(tasks.map(jobOf), place, budgetsMs, fixed);
  return members.map(({ task, share }, at) => Math.min(task.maxShare ?? 1, shares[running.length + at] ?? share));
}

/** The share that its owner has fixed, or that it has on several GPUs; undefined: the table chooses. */
function fixedShare({ task, share }: { task: Task; share: number }): number | undefined {
  return task.gpus > 1 ? share : task.share;
}

/** What was learned of one kind of GPU. */
interface Learned {
  samples: SlowdownSample[];
  /** Runs seen so far, and how many will have the forest trained again. */
  seen: number;
  nextAt: number;
  /** Those that it was trained on. */
  trainedOn: readonly SlowdownSample[];
  predictor: SlowdownPredictor | undefined;
}

type SavedForests = [string, Omit<Learned, 'predictor'>][];

/** The paper's forest for each kind of GPU, learned from runs as they end. */
export class PaperForests {
  private readonly kinds = new Map<string, Learned>();

  /** `before`: predictors for kinds of which too few runs have ended. */
  constructor(private readonly before: (gpu: GpuKind) => SlowdownPredictor) {}

  /** The same object until the forest is trained again. */
  predictorOf(gpu: GpuKind): SlowdownPredictor {
    return this.kinds.get(kindName(gpu))?.predictor ?? this.before(gpu);
  }

  /** Trains again each time that twice as many runs were seen. A run of several GPUs says nothing of one. */
  observe(run: ObservedRun): void {
    const sample = run.task.gpus > 1 ? undefined : sampleOf(run);
    if (sample === undefined || sampleFault(sample) !== undefined) return;
    const name = kindName(run.gpu);
    let learned = this.kinds.get(name);
    if (learned === undefined) {
      learned = { samples: [], seen: 0, nextAt: leastRuns, trainedOn: [], predictor: undefined };
      this.kinds.set(name, learned);
    }
    learned.samples.push(sample);
    if (learned.samples.length > mostRuns) learned.samples.shift();
    learned.seen += 1;
    if (learned.seen < learned.nextAt) return;
    learned.nextAt = 2 * learned.seen;
    learned.trainedOn = [...learned.samples];
    learned.predictor = paperForest(learned.trainedOn);
  }

  saved(): SavedForests {
    return Array.from(this.kinds, ([name, { samples, seen, nextAt, trainedOn }]) => [
      name,
      { samples, seen, nextAt, trainedOn },
    ]);
  }

  restore(saved: SavedForests): void {
    this.kinds.clear();
    for (const [name, learned] of saved) {
      const { samples, trainedOn } = learned;
      const predictor = trainedOn.length === 0 ? undefined : paperForest(trainedOn);
      this.kinds.set(name, { ...learned, samples: [...samples], predictor });
    }
  }
}

/** The paper's forest on the seven features of table II; the same samples give the same one. */
export function paperForest(samples: readonly SlowdownSample[]): SlowdownPredictor {
  const rows = samples.map(({ one, others }) => faashareFeatures(one, others));
  const slowdowns = samples.map(({ slowdown }) => slowdown);
  const forest = trainForest(rows, slowdowns, { ...faashareForest, seed: samples.length });
  return { slowdown: (one, others) => Math.max(1, predictForest(forest, faashareFeatures(one, others))) };
}

/** A run beside what was there, on average if that changed; undefined where its time alone or its figures are not known. */
function sampleOf(run: ObservedRun): SlowdownSample | undefined {
  const { task, share, ranMs } = run;
  const { soloMs, features } = task;
  if (soloMs === undefined || !(soloMs > 0) || features === undefined) return undefined;
  const steady = steadyNeighbours(run)?.map((other): CoLocated => ({
    features: other.task.features ?? unseen,
    share: other.share,
  }));
  return {
    one: { features, share },
    others: steady ?? averageNeighbours(run, unseen),
    slowdown: ranMs / soloMs,
  };
}
