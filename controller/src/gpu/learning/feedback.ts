import { averageNeighbours, steadyNeighbours } from '@gpuwhisk/gpu/stages/profile/run-log';
import type { Neighbour, LoggedRun } from '@gpuwhisk/gpu/stages/profile/run-log';
import type { ObservedRun } from '@gpuwhisk/gpu/view/decision';
import type { Task } from '@gpuwhisk/gpu/view/view';
import type { FirstShare } from '@gpuwhisk/gpu/stages/place/first-share';
import type { CoLocated } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { SlowdownSample } from '@gpuwhisk/gpu/predict/samples';
import { jobOf } from '@gpuwhisk/gpu/share/quotas';
import { SetObservations } from '@gpuwhisk/gpu/share/set-observations';
import type { SetMember } from '@gpuwhisk/gpu/share/set-observations';
import type { PerformanceData } from './performance-data.js';

/** Features assumed for a function without measured ones. */
const unseen = { smUtil: 1, dramUtil: 1, l2Util: 1 };

/** Part of a run by which its neighbours, one after the other, may seem to have been there for longer than it. */
const clockPart = 0.1;

/** Updates profiles, slowdown samples and the table of shares with the times of runs. */
export class Feedback {
  private readonly sets = new SetObservations();

  /** `firstShare`: the rule of the policy for functions of which nothing is measured; undefined: it has none. */
  constructor(
    private readonly performanceData: PerformanceData,
    private readonly firstShare?: FirstShare,
  ) {}

  /** Learns from a successful run; the time of a failed one says nothing about its function. */
  ran(run: LoggedRun & ObservedRun): void {
    const { task, gpu, isWarm, hasUnknownNeighbours, hasMovedShares, shareClass, workloads } = run;
    if (hasMovedShares) return;
    // The neighbours of a run on several GPUs differ between these.
    const isAside = workloads === undefined && run.alsoOn.length === 0;
    const neighbours = hasUnknownNeighbours || !isAside ? undefined : steadyNeighbours(run);
    const predictor = this.performanceData.predictors.predictor(gpu);
    const others = neighbours?.map(coLocated) ?? averageNeighbours(run, unseen);
    const isAlone = neighbours?.length === 0;
    const byRule = isAlone ? undefined : this.slowdownByRule(run);
    const slowdown = byRule ?? predictor.slowdown(coLocated(run), others);
    const refused = this.performanceData.profiles.ran({
      task,
      gpu,
      tookMs: run.ranMs,
      slowdown,
      isWarm,
      isAlone,
      ...(shareClass !== undefined && { shareClass }),
    });
    if (refused !== undefined) this.performanceData.metrics.runOffered('refused');
    else if (isWarm && neighbours !== undefined && neighbours.length > 0)
      this.recordSlowdown(run, neighbours, slowdown);
  }

  /** How much slower than alone a run was by the rule for unknown functions; undefined: not all its neighbours are under it. */
  private slowdownByRule(run: LoggedRun & ObservedRun): number | undefined {
    const { gpu, beside, endedAt = 0 } = run;
    if (this.firstShare === undefined || beside.length === 0) return undefined;
    const together = beside.reduce((sum, { part }) => sum + part, 0);
    // Several at once are no pair; clocks of starts and ends differ a little.
    if (together > 1 + clockPart) return undefined;
    // The part of its work that it would have done meanwhile alone and did not.
    let lost = 0;
    for (const { task, share, part } of beside) {
      const [slowdown] = this.firstShare.slowdowns(gpu, [run, { task, share }], endedAt) ?? [];
      if (slowdown === undefined) return undefined;
      lost += (part / Math.max(1, together)) * (1 - 1 / slowdown);
    }
    return 1 / (1 - lost);
  }

  /** Records the slowdown of a warm run whose neighbours did not change, with the predicted one. */
  private recordSlowdown(run: ObservedRun, neighbours: readonly Neighbour[], predicted: number): void {
    const { task, gpu, ranMs } = run;
    const soloMs = this.performanceData.profiles.aloneMs(task, gpu);
    if (soloMs === undefined) return;
    const slowdown = ranMs / soloMs;
    this.performanceData.profiles.compared(task, gpu, { predicted, measured: slowdown });
    const sample = sampleOf(run, neighbours, slowdown);
    const refused = sample && this.performanceData.runs.add(gpu, sample);
    if (sample !== undefined) this.performanceData.metrics.runOffered(refused === undefined ? 'taken' : 'refused');
    const members = [run, ...neighbours].map(({ task: one, share }): SetMember => ({
      job: jobOf(one),
      share: share * 100,
    }));
    const measurement = this.sets.add(gpu, members, slowdown);
    if (measurement === undefined) return;
    const { set, point } = measurement;
    const problem = this.performanceData.table.record(set, gpu, point, this.performanceData.driverOf(gpu.id));
    this.performanceData.metrics.setMeasured(problem === undefined ? 'taken' : 'refused');
  }
}

/** Whether a run was warm, and beside known functions only, so that its time tells what these cost it. */
export function isUndisturbed({ isWarm, hasUnknownNeighbours, hasMovedShares, workloads, task }: LoggedRun): boolean {
  return isWarm && !hasUnknownNeighbours && hasMovedShares !== true && workloads === undefined && task.gpus === 1;
}

function coLocated({ task, share }: { task: Task; share: number }): CoLocated {
  return { features: task.features ?? unseen, share };
}

/** A sample of a set whose members were all observed. */
function sampleOf(
  { task, share }: ObservedRun,
  neighbours: readonly Neighbour[],
  slowdown: number,
): SlowdownSample | undefined {
  const { features } = task;
  if (features === undefined) return undefined;
  const others = neighbours.flatMap((one) =>
    one.task.features === undefined ? [] : [{ features: one.task.features, share: one.share }],
  );
  return others.length === neighbours.length ? { one: { features, share }, others, slowdown } : undefined;
}
