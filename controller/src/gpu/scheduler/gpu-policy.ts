import { ConfigError } from '@gpuwhisk/common/config';
import type { Config } from '@gpuwhisk/common/config';
import type { GpuNeed, NodeStatus, Share } from '@gpuwhisk/common/gpu';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/place/placement-request';
import { classAtOrAbove, shareOf } from '@gpuwhisk/gpu/share/share-of';
import type { GpuState, Policy, SchedulingEvent, Start, Task, TaskRejection } from '@gpuwhisk/gpu/policies/policy';
import { isWarmOn } from '@gpuwhisk/gpu/order/sub-queue';
import { makePolicy, policyProblem } from '@gpuwhisk/gpu/policies/registry';
import { RunLog } from '@gpuwhisk/gpu/profile/run-log';
import { Arrivals } from './arrivals.js';
import type { GpuPlacer } from './gpu-placer.js';
import { Feedback } from '../learning/feedback.js';
import type { Learned } from '../learning/learned.js';
import { featuresOf, hasStrangers } from '../learning/sightings.js';
import type { WaitingActivation } from './gpu-queue.js';
import { seenPlaces } from './gpu-snapshot.js';
import type { SeenPlace } from './gpu-snapshot.js';
import { liveQuotas } from '../learning/live-quotas.js';
import type { SampleRun } from '../../invoke/invoke-service.js';
import { requestOf } from './gpu-queue.js';

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

/** A healthy GPU, or MIG instance, and whether nobody runs there; samples, which give way to everybody, do not count. */
export interface SampledPlace {
  gpu: GpuState;
  isFree: boolean;
}

/** Whom samples run for: no namespace's turn or part of the GPUs is used up by them. */
const sampler = 'whisk.system';

/** What a GpuPolicy is made of. */
export interface GpuPolicyParts {
  placer: GpuPlacer;
  clock: Clock;
  learned: Learned;
  options: Pick<Config['gpu'], 'policy' | 'admission'>;
}

/** Throws ConfigError where the configuration names a policy that there is not. */
export function checkPolicy({ policy }: Pick<Config['gpu'], 'policy'>): void {
  const problem = policyProblem(policy);
  if (problem !== undefined) throw new ConfigError(`gpu.policy: ${problem}`);
}

/** Has a policy of gpu/ decide about activations, on what the agents tell and on what was learned from runs. */
export class GpuPolicy {
  private readonly policy: Policy;
  private readonly runs = new RunLog();
  private readonly feedback: Feedback;
  private readonly arrivals = new Arrivals();

  constructor(private readonly parts: GpuPolicyParts) {
    const { learned, options } = parts;
    this.feedback = new Feedback(learned);
    this.policy = makePolicy(options.policy, {
      predictorOf: ({ type, mode }) => learned.predictors.predictor({ gpuType: type, mode }),
      quotas: liveQuotas(learned),
      admission: options.admission,
      random: seededRandom(1),
    });
  }

  /** Decides about those that wait, after `event`. */
  decide(waiting: readonly WaitingActivation[], event: SchedulingEvent): PolicyDecision {
    const at = this.parts.clock.now();
    const places = this.seenPlaces(at);
    const nowMs = this.parts.clock.monotonicMs();
    const byId = new Map(waiting.map((one) => [one.message.activationId, one]));
    const tasks = waiting.map((one): Task => {
      const arrivedAt = this.arrivals.of(one, at, nowMs);
      const { refusedAtMs } = one;
      const allowed = refusedAtMs.size > 0 && new Set(this.parts.placer.accounts(refusedAtMs).map(({ id }) => id));
      return { ...this.taskOf(one, arrivedAt), ...(allowed && { allowed }) };
    });
    const gpus = places.map(({ gpu }) => gpu);
    const decision = this.policy.decide({ at, gpus, waiting: tasks }, event);
    const gpuOf = new Map(gpus.map((gpu) => [gpu.id, gpu]));
    const taskOf = new Map(tasks.map((task) => [task.id, task]));
    return {
      starts: decision.starts.map((start) => {
        const one = byId.get(start.task)!;
        const gpu = gpuOf.get(start.gpu)!;
        return { waiting: one, choose: () => this.choose(one, taskOf.get(start.task)!, gpu, start, places) };
      }),
      late: [
        ...decision.refused.map(({ task, reason }) => ({ id: task, reason })),
        ...decision.bestEffort.map((id) => ({ id, reason: '' })),
      ].map(({ id, reason }) => [byId.get(id)!, reason]),
      order: decision.order,
      rejected: decision.rejected,
    };
  }

  /** Puts a sample on the GPU that it is to be measured on; nothing is chosen where that has no room for it. */
  placeSample(
    message: ActivationMessage,
    need: GpuNeed,
    { gpu: id, shareClass }: SampleRun,
  ): { request: PlacementRequest; choice: PlacementChoice } {
    const { placer, clock } = this.parts;
    const asked = requestOf(message, need);
    const share = shareClass / 100;
    const request = { ...asked, share: { ...asked.share, shareClass, smRequest: share, smLimit: share } };
    const places = this.seenPlaces(clock.now());
    const place = places.find(({ gpu }) => gpu.id === id);
    if (place === undefined) return { request, choice: { rejected: [] } };
    const choice = placer.place(request, { kept: new Set(), only: new Set([id]), refusedAtMs: new Map() });
    if (choice.placement !== undefined) {
      const at = clock.now();
      const task: Task = {
        ...{ id: message.activationId, function: request.action, version: message.action.version ?? '' },
        ...{ namespace: sampler, batch: need.batch, gpus: 1, memoryMiB: need.memoryMiB, class: need.class },
        arrivedAt: at,
      };
      this.runs.began(message.activationId, {
        ...{ task, gpu: place.gpu, alsoOn: [], share, startedAt: at, startMs: clock.monotonicMs() },
        ...{ isWarm: choice.reuses !== undefined, hasStrangers: this.hasStrangers(place), isSample: true },
      });
    }
    return { request, choice };
  }

  /** The GPUs that samples could be measured on. */
  sampledPlaces(): SampledPlace[] {
    const isSample = (id: string): boolean => this.runs.get(id)?.isSample === true;
    return this.seenPlaces(this.parts.clock.now()).map(({ place, gpu }) => ({
      gpu,
      isFree: !hasStrangers(place.status) && gpu.running.every(({ task }) => isSample(task.id)),
    }));
  }

  /** A run is over: what it took is learned if it has succeeded. */
  ended(activationId: string, succeeded: boolean): void {
    const run = this.runs.end(activationId, this.parts.clock.monotonicMs());
    if (run === undefined || run.isSample === true) return;
    if (succeeded) this.feedback.ran(run);
    this.policy.observe?.(run);
  }

  /** It never came to run. */
  returned(activationId: string): void {
    this.runs.dropped(activationId);
  }

  /** It should have ended by now, and nobody has said that it did. */
  lost(activationId: string): void {
    this.runs.lost(activationId);
  }

  /** Another controller decides: what becomes of the runs is told to that one. */
  handedOver(): void {
    this.runs.clear();
  }

  /** An agent has told what is there. */
  seen(node: NodeStatus): void {
    this.parts.learned.seen(node);
  }

  private seenPlaces(at: number): SeenPlace[] {
    const { placer } = this.parts;
    return seenPlaces(
      placer.accounts(),
      (id) => placer.heldOn(id),
      (id) => this.runs.get(id),
      at,
    );
  }

  private taskOf({ message, need, request, sloMs }: WaitingActivation, arrivedAt: number): Task {
    const identity = {
      ...{ function: request.action, version: message.action.version ?? '', batch: need.batch },
      arrivedAt,
    };
    // Instances of a batch are joined by requests of the very same share.
    const isFixed = need.mpsPercent !== undefined || need.smLimit !== undefined || need.batch > 1;
    const { features: seen, ...times } = this.parts.learned.profiles.of(identity);
    const features = featuresOf(seen, need.features);
    return {
      ...{ id: message.activationId, ...identity, namespace: request.namespace, gpus: need.gpus },
      ...{ memoryMiB: need.memoryMiB, class: need.class, isolation: request.isolation },
      ...(sloMs !== undefined && { sloMs }),
      ...(isFixed && { share: shareOf(need).smLimit }),
      ...(need.maxShareClass !== undefined && { maxShare: need.maxShareClass / 100 }),
      ...times,
      ...(features !== undefined && { features }),
    };
  }

  private choose(
    { message, need, request, refusedAtMs }: WaitingActivation,
    task: Task,
    gpu: GpuState,
    start: Start,
    places: readonly SeenPlace[],
  ): { request: PlacementRequest; choice: PlacementChoice } {
    const chosen = new Set([start.gpu, ...(start.alsoOn ?? [])]);
    const share = task.share === undefined ? shareIn(gpu, task, start.share, shareOf(need)) : shareOf(need);
    const placed = { ...request, share };
    const choice = withPrediction(
      this.parts.placer.place(placed, { kept: new Set(), only: chosen, refusedAtMs }),
      isWarmOn(gpu, task) ? { ...task, startMs: 0 } : task,
      start,
    );
    if (choice.placement !== undefined) {
      const { clock } = this.parts;
      this.runs.began(message.activationId, {
        ...{ task: choice.reuses === undefined ? task : { ...task, startMs: 0 }, gpu },
        ...{ alsoOn: start.alsoOn ?? [], share: share.smLimit },
        ...{ startedAt: clock.now(), startMs: clock.monotonicMs(), isWarm: choice.reuses !== undefined },
        hasStrangers: places.some((one) => chosen.has(one.gpu.id) && this.hasStrangers(one)),
      });
    }
    return { request: placed, choice };
  }

  /** Whether somebody is there from an earlier life of this controller, or none of the platform's. */
  private hasStrangers({ place, gpu }: SeenPlace): boolean {
    return hasStrangers(place.status) || gpu.running.some((one) => this.runs.get(one.task.id) === undefined);
  }
}

/** `choice`, with what the run is predicted to take where that is known. */
function withPrediction(
  choice: PlacementChoice,
  { soloMs, startMs = 0 }: Task,
  { predictedMs }: Start,
): PlacementChoice {
  if (choice.placement === undefined || soloMs === undefined || predictedMs === undefined) return choice;
  const predicted = { soloMs, runMs: Math.max(0, predictedMs - startMs) };
  return { ...choice, placement: { ...choice.placement, predicted } };
}

/** The share of an instance that idles there, the smallest at or above what was decided; else that of a new one. */
function shareIn({ idle = [] }: GpuState, task: Task, wanted: number, asked: Share): Share {
  const { maxShare = 1 } = task;
  const decided = Math.min(wanted, maxShare);
  const own = idle.filter((one) => one.function === task.function && one.namespace === task.namespace);
  const classes = own.map(({ share }) => share).filter((share) => share >= decided && share <= maxShare);
  const fraction = classes.length > 0 ? Math.min(...classes) : decided;
  return { ...asked, shareClass: classAtOrAbove(fraction), smRequest: Math.min(decided, fraction), smLimit: fraction };
}
