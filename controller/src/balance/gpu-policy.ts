import type { Config } from '@gpuwhisk/common/config';
import type { NodeStatus, Share } from '@gpuwhisk/common/gpu';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/place/least-loaded';
import { classAtOrAbove, shareOf } from '@gpuwhisk/gpu/place/share-of';
import type { GpuState, Policy, RunningTask, Start, Task, TaskRejection } from '@gpuwhisk/gpu/policies/policy';
import { makePolicy } from '@gpuwhisk/gpu/policies/registry';
import { PredictorTable } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { CoLocated, SlowdownPredictor } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { GpuPlacer } from './gpu-placer.js';
import { GpuProfiles } from './gpu-profiles.js';
import type { WaitingActivation } from './gpu-queue.js';
import { allowedPlaces, seenPlaces } from './gpu-snapshot.js';

/** What is to be done with those who wait. */
export interface PolicyDecision {
  /** `choose` is called in this order, and each one's choice is carried out before the next: it looks at what is left. */
  starts: { waiting: WaitingActivation; choose: () => { request: PlacementRequest; choice: PlacementChoice } }[];
  /** Those who cannot meet their SLO, with the reason. */
  late: [WaitingActivation, string][];
  /** Ids of those who go on to wait, the next one first; and what each was not put on, and why. */
  order: readonly string[];
  rejected: readonly TaskRejection[];
}

/** An activation that was sent to its GPU. */
interface Run {
  task: Task;
  gpu: GpuState;
  share: number;
  /** On the wall clock, as a snapshot's times; and monotonic, for how long it took. */
  startedAt: number;
  sentMs: number;
  isWarm: boolean;
}

/** Runs that are remembered; more are beyond what one controller has under way. */
const maxRuns = 10_000;
/** Assumed of what nobody has seen run. */
const unseen = { smUtil: 1, dramUtil: 1, l2Util: 1 };

/** Has a policy of gpu/ decide about activations, on what the agents tell and on what was learned from runs. */
export class GpuPolicy {
  private readonly policy: Policy;
  private readonly predictors = new PredictorTable();
  private readonly profiles = new GpuProfiles();
  private readonly runs = new Map<string, Run>();

  constructor(
    private readonly placer: GpuPlacer,
    private readonly clock: Clock,
    name: string,
    admission: Config['gpu']['admission'],
  ) {
    const predictorOf = (gpu: Pick<GpuState, 'type' | 'mode'>): SlowdownPredictor => this.predictorOf(gpu);
    this.policy = makePolicy(name, { predictorOf, admission, random: seededRandom(1) });
  }

  /** Decides about all that wait. */
  decide(waiting: readonly WaitingActivation[]): PolicyDecision {
    const view = this.placer.view();
    const places = seenPlaces(view, (id) => this.runs.get(id));
    const byId = new Map(waiting.map((one) => [one.message.activationId, one]));
    const tasks = waiting.map((one): Task => {
      const heard = this.placer.view({ kept: new Set(), refusedAtMs: one.refusedAtMs }).nodes;
      const allowed = allowedPlaces(places, one.request, new Set(heard.map(({ invoker }) => invoker)));
      return { ...this.taskOf(one), allowed };
    });
    const gpus = places.map(({ gpu }) => gpu);
    const decision = this.policy.decide({ at: view.at, gpus, waiting: tasks }, { kind: 'timer' });
    const gpuOf = new Map(gpus.map((gpu) => [gpu.id, gpu]));
    const taskOf = new Map(tasks.map((task) => [task.id, task]));
    return {
      starts: decision.starts.map((start) => {
        const one = byId.get(start.task)!;
        const gpu = gpuOf.get(start.gpu)!;
        return { waiting: one, choose: () => this.choose(one, taskOf.get(start.task)!, gpu, start, gpus) };
      }),
      late: [
        ...decision.refused.map(({ task, reason }) => ({ id: task, reason })),
        ...decision.bestEffort.map((id) => ({ id, reason: '' })),
      ].map(({ id, reason }) => [byId.get(id)!, reason]),
      order: decision.order,
      rejected: decision.rejected,
    };
  }

  /** A run is over: what it took is learned. */
  ended(activationId: string): void {
    const run = this.runs.get(activationId);
    if (run === undefined) return;
    this.runs.delete(activationId);
    const { task, gpu, share, isWarm } = run;
    const ranMs = this.clock.monotonicMs() - run.sentMs;
    const coLocated = (one: Task, share: number): CoLocated => ({ features: one.features ?? unseen, share });
    const others = gpu.running.map((one) => coLocated(one.task, one.share));
    this.profiles.ran(task, ranMs, this.predictorOf(gpu).slowdown(coLocated(task, share), others), isWarm);
    const beside = gpu.running.map((one: RunningTask) => ({ task: one.task, share: one.share, part: 1 }));
    this.policy.observe?.({ task, gpu, share, ranMs, beside });
  }

  /** It never came to run. */
  returned(activationId: string): void {
    this.runs.delete(activationId);
  }

  /** An agent has told what is there. */
  seen(node: NodeStatus): void {
    this.profiles.seen(node);
  }

  private predictorOf({ type, mode }: Pick<GpuState, 'type' | 'mode'>): SlowdownPredictor {
    return this.predictors.predictor({ gpuType: type, mode });
  }

  private taskOf({ message, need, request, arrivedMs, sloMs }: WaitingActivation): Task {
    const identity = { function: request.action, version: message.action.version ?? '', batch: need.batch };
    // Instances of a batch are joined by requests of the very same share.
    const isFixed = need.mpsPercent !== undefined || need.smLimit !== undefined || need.batch > 1;
    return {
      ...{ id: message.activationId, ...identity, namespace: request.namespace, gpus: need.gpus },
      ...{ memoryMiB: need.memoryMiB, arrivedAt: arrivedMs, class: need.class },
      ...(sloMs !== undefined && { sloMs }),
      ...(isFixed && { share: shareOf(need).smLimit }),
      ...this.profiles.of(identity),
    };
  }

  private choose(
    { message, need, request, refusedAtMs }: WaitingActivation,
    task: Task,
    gpu: GpuState,
    start: Start,
    gpus: readonly GpuState[],
  ): { request: PlacementRequest; choice: PlacementChoice } {
    const chosen = new Set([start.gpu, ...(start.alsoOn ?? [])]);
    const kept = new Set(gpus.map(({ id }) => id).filter((id) => !chosen.has(id)));
    const share = task.share === undefined ? shareIn(gpu, task, start.share, shareOf(need)) : shareOf(need);
    const placed = { ...request, share };
    const choice = this.placer.place(placed, { kept, refusedAtMs });
    if (choice.placement !== undefined) {
      const [startedAt, sentMs] = [this.clock.now(), this.clock.monotonicMs()];
      const isWarm = choice.reuses !== undefined;
      this.runs.set(message.activationId, { task, gpu, share: share.smLimit, startedAt, sentMs, isWarm });
      for (const id of this.runs.keys()) {
        if (this.runs.size <= maxRuns) break;
        this.runs.delete(id);
      }
    }
    return { request: placed, choice };
  }
}

/** The share of an instance that idles there, the smallest at or above what was decided; else that of a new one. */
function shareIn({ idle = [] }: GpuState, task: Task, decided: number, asked: Share): Share {
  const own = idle.filter((one) => one.function === task.function && one.namespace === task.namespace);
  const classes = own.map(({ share }) => share).filter((share) => share >= decided);
  const fraction = classes.length > 0 ? Math.min(...classes) : decided;
  return { ...asked, shareClass: classAtOrAbove(fraction), smRequest: Math.min(decided, fraction), smLimit: fraction };
}
