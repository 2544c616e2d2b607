import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { Receipt } from '@gpuwhisk/common/bus/message-bus';
import type { Config } from '@gpuwhisk/common/config';
import { gpuSloImpossible, gpuTooLate, gpuWaitTooLong } from '@gpuwhisk/common/errors';
import type { GpuNeed, Placement } from '@gpuwhisk/common/gpu';
import type { GpuMetrics } from '@gpuwhisk/common/gpu-metrics';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { isOverdue } from '@gpuwhisk/gpu/order/earliest-deadline';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/place/placement-request';
import type { SchedulingEvent } from '@gpuwhisk/gpu/policies/policy';
import type { GpuPlacer } from './gpu-placer.js';
import type { GpuPolicy } from './gpu-policy.js';
import type { GpuQueue, WaitingActivation } from './gpu-queue.js';
import type { GpuRefuser } from './gpu-refuser.js';

/** What a GpuPass is made of. */
export interface GpuPassDependencies {
  queue: GpuQueue;
  placer: GpuPlacer;
  /** Absent: the earliest deadline first, to the least loaded GPU. */
  policy: GpuPolicy | undefined;
  refuser: GpuRefuser;
  clock: Clock;
  logger: Logger;
  metrics: GpuMetrics;
  options: Pick<Config['gpu'], 'admission' | 'maxWaitMs'>;
  /** Whether the run of an activation has ended, as far as is known here. */
  isOver: (activationId: string) => boolean;
  /** Told of every placement. */
  onPlaced?(placement: Placement): void;
}

interface Unsure {
  message: ActivationMessage;
  placement: Placement;
  /** Ends the message that keeps it. */
  done: () => void;
}

/** Before what was sent in vain is sent again, ms. */
const sendAgainMs = 1000;

/** Places those whose turn it is and for whom there is room, and ends those who waited in vain. */
export class GpuPass {
  /** Activations that were sent and may not have reached their invoker, by id. */
  private readonly unsure = new Map<string, Unsure>();
  private sendAgainSet = false;
  private closed = false;

  constructor(private readonly dependencies: GpuPassDependencies) {}

  /** Sends nothing any more. */
  close(): void {
    this.closed = true;
  }

  /** Decides about those who wait after each of `events`. */
  run(events: readonly SchedulingEvent[]): void {
    const { policy, clock, logger } = this.dependencies;
    const nowMs = clock.monotonicMs();
    // Another controller may have them by now, and decide otherwise.
    const late = this.dependencies.placer.isEntitled ? this.endWaits(nowMs) : undefined;
    try {
      if (policy === undefined) this.placeInTurn(nowMs);
      else for (const event of late === undefined ? events : [late]) this.placeByPolicy(policy, event);
    } catch (error) {
      // The invoker's topic is full, or the log fails: they go on to wait.
      if (!(error instanceof TopicFullError)) {
        logger.error({ error: String(error) }, 'an activation could not be sent to its GPU');
      }
    }
  }

  /** Sends an activation where it was placed. Throws TopicFullError, or another Error if the log has failed. */
  send(message: ActivationMessage, need: GpuNeed, request: PlacementRequest, choice: PlacementChoice): Receipt {
    const { placer, metrics, clock } = this.dependencies;
    const receipt = placer.send(message, need, request, choice);
    metrics.decided('placed');
    if (choice.placement !== undefined) this.dependencies.onPlaced?.(choice.placement);
    metrics.waited(Math.max(0, clock.now() - message.transid[1]));
    return receipt;
  }

  /** Gives the event that a policy has to look at all who wait for, if there is one. */
  private endWaits(nowMs: number): SchedulingEvent | undefined {
    const { queue, refuser, options } = this.dependencies;
    const { admission, maxWaitMs } = options;
    const late = queue.late(nowMs);
    for (const one of late) {
      if (admission === 'refuse') refuser.refuse(one, gpuTooLate(one.need.sloMs ?? 0));
      else queue.demote(one);
    }
    const spent = queue.spent(nowMs, maxWaitMs);
    for (const one of spent) refuser.refuse(one, gpuWaitTooLong(maxWaitMs));
    const [first] = [...late, ...spent];
    return first && { kind: 'timeout', task: first.message.activationId };
  }

  private placeInTurn(nowMs: number): void {
    const { queue, placer } = this.dependencies;
    const kept = new Set<string>();
    /** What was asked for in vain: what is given out to others makes no room. */
    const inVain = new Set<string>();
    for (const waiting of queue.inTurn(nowMs)) {
      const { request, refusedAtMs } = waiting;
      const asked = JSON.stringify([request, [...refusedAtMs]]);
      if (inVain.has(asked)) continue;
      const limits = { kept, refusedAtMs };
      const choice = placer.place(request, limits);
      if (choice.placement !== undefined) {
        this.forward(waiting, choice);
        continue;
      }
      inVain.add(asked);
      if (!isOverdue(waiting, nowMs)) continue;
      for (const place of placer.placesToKeep(request, limits)) kept.add(place);
    }
  }

  private placeByPolicy(policy: GpuPolicy, event: SchedulingEvent): void {
    const { queue, placer, refuser, options } = this.dependencies;
    if (!placer.isEntitled) return;
    // Joining a batch takes nothing of a GPU that its instance does not have.
    for (const waiting of [...queue].filter(({ need }) => need.batch > 1)) {
      const choice = placer.place(waiting.request, { kept: new Set(), refusedAtMs: waiting.refusedAtMs });
      if (choice.placement?.joins) this.forward(waiting, choice);
    }
    const { starts, late, order, rejected } = policy.decide([...queue], event);
    queue.decided(order, rejected, event.kind === 'arrival');
    for (const [waiting, reason] of late) {
      if (options.admission === 'best-effort') queue.demote(waiting);
      else refuser.refuse(waiting, gpuSloImpossible(reason));
    }
    for (const { waiting, choose } of starts) {
      const { request, choice } = choose();
      if (choice.placement === undefined) continue;
      try {
        this.forward({ ...waiting, request }, choice);
      } catch (error) {
        policy.returned(waiting.message.activationId);
        throw error;
      }
    }
  }

  private forward(waiting: WaitingActivation, choice: PlacementChoice): void {
    const { message, need, request, refusals } = waiting;
    const again = refusals.length === 0 ? message : { ...message, gpuRefusals: [...refusals] };
    const receipt = this.send(again, need, request, choice);
    this.dependencies.queue.remove(waiting);
    const { placement } = choice;
    if (placement !== undefined) this.confirm({ message: again, placement, done: waiting.done }, receipt);
  }

  /** Ends the message that keeps an activation once its invoker's topic has it. */
  private confirm(sent: Unsure, receipt: Receipt): void {
    const { activationId } = sent.message;
    receipt.synced().then(
      () => {
        this.unsure.delete(activationId);
        sent.done();
      },
      () => {
        this.unsure.set(activationId, sent);
        this.sendAgainSoon();
      },
    );
  }

  private sendAgainSoon(): void {
    if (this.sendAgainSet) return;
    this.sendAgainSet = true;
    this.dependencies.clock.setBackgroundTimer(sendAgainMs, () => {
      this.sendAgainSet = false;
      if (!this.closed) this.sendAgain();
    });
  }

  /**
   * The same placements are sent again, for as long as it takes: an invoker that has one of them already takes it once. What
   * has ended, or was decided anew, needs it no more.
   */
  private sendAgain(): void {
    const { placer, queue, logger, isOver } = this.dependencies;
    if (this.unsure.size > 0) logger.error({ activations: this.unsure.size }, 'what was sent to GPUs is sent again');
    for (const [activationId, sent] of this.unsure) {
      const now = placer.placementOf(activationId);
      if (isOver(activationId) || queue.has(activationId) || (now !== undefined && now !== sent.placement)) {
        this.unsure.delete(activationId);
        sent.done();
        continue;
      }
      try {
        this.confirm(sent, placer.sendAgain(sent.message, sent.placement));
        this.unsure.delete(activationId);
      } catch {
        // The topic is full, or the log fails: it has its next turn.
        this.sendAgainSoon();
      }
    }
  }
}
