import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { Receipt } from '@gpuwhisk/common/bus/message-bus';
import type { Config } from '@gpuwhisk/common/config';
import { gpuSloImpossible, gpuTooLate, gpuWaitTooLong, sampleNotRun } from '@gpuwhisk/common/errors';
import type { GpuNeed, Placement, Rejection } from '@gpuwhisk/common/gpu';
import type { GpuMetrics } from '@gpuwhisk/common/gpu-metrics';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { PlacementChoice } from '@gpuwhisk/gpu/ledger/account';
import type { Action, Actuator } from '@gpuwhisk/gpu/view/decision';
import type { SchedulingEvent } from '@gpuwhisk/gpu/view/view';
import type { RecentIds } from '@gpuwhisk/common/short-lived-map';
import type { ActivityReporter } from '@gpuwhisk/common/activations/activity';
import { isRecordKept, recordedCall } from '@gpuwhisk/common/activations/record-policy';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { ActivationStatus, activationDocument } from '@gpuwhisk/common/entities/activation';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { GpuPlacer } from './gpu-placer.js';
import { reasonIn } from './explanation.js';
import type { GpuPolicy, PolicyStart } from './gpu-policy.js';
import { waitingOf } from './gpu-queue.js';
import type { GpuQueue, WaitingActivation } from './gpu-queue.js';
import type { GpuHandover, OnRefused } from '../handover/gpu-handover.js';
import { refusedRecord } from '../../invoke/activation-message.js';

/** Dependencies of GpuPass. */
interface GpuPassDependencies {
  queue: GpuQueue;
  placer: GpuPlacer;
  policy: GpuPolicy;
  refuser: GpuRefuser;
  clock: Clock;
  logger: Logger;
  metrics: GpuMetrics;
  options: Pick<Config['gpu'], 'admission' | 'maxWaitMs'>;
  /** Whether an activation's run is known here to have ended. */
  isOver: (activationId: string) => boolean;
  actuator: Actuator;
  /** Requests the next pass at a time, epoch ms. */
  wakeAt(at: number): void;
  /** Called for every placement. */
  onPlaced?(placement: Placement): void;
}

interface Unconfirmed {
  message: ActivationMessage;
  placement: Placement;
  /** Ends the message that keeps the activation. */
  done: () => void;
}

/** Delay before a failed send is repeated, ms. */
const sendAgainMs = 1000;

/** Places queued activations in the policy's order, and ends those that have waited too long. */
export class GpuPass {
  /** Activations that were sent and whose message may not be durable, by id. */
  private readonly unconfirmed = new Map<string, Unconfirmed>();
  private sendAgainSet = false;
  private closed = false;

  constructor(private readonly dependencies: GpuPassDependencies) {}

  /** Stops sending. */
  close(): void {
    this.closed = true;
  }

  /** Runs a pass for each of `events`. */
  run(events: readonly SchedulingEvent[]): void {
    const { clock, logger, metrics } = this.dependencies;
    const beganMs = clock.monotonicMs();
    // On another leader these activations may be decided otherwise.
    const late = this.dependencies.placer.isLeader ? this.endWaits(clock.monotonicMs()) : undefined;
    try {
      for (const event of late === undefined ? events : [late]) this.placeByPolicy(event);
    } catch (error) {
      // The invoker's topic is full, or the log has failed: the activations go on waiting.
      if (!(error instanceof TopicFullError)) {
        logger.error({ error: String(error) }, 'an activation could not be sent to its GPU');
      }
    }
    metrics.passed(clock.monotonicMs() - beganMs);
  }

  /**
   * Decides about an activation that arrives at an empty queue; `sent` is absent if the activation must wait. Throws
   * TopicFullError, or another Error if the log has failed.
   */
  sendAtOnce(message: ActivationMessage, need: GpuNeed): { sent?: Receipt; rejected: Rejection[] } {
    const { policy, clock } = this.dependencies;
    const waiting = waitingOf(message, need, clock);
    const { starts, rejected, actions } = policy.decide([waiting], { kind: 'arrival', task: message.activationId });
    this.carryOut(actions);
    const [start] = starts;
    if (start === undefined) return { rejected: [...rejected] };
    const { choice, start: decided } = start;
    if (!policy.begins(start)) return { rejected: choice.rejected };
    try {
      return { sent: this.send(waiting, choice, decided.reason), rejected: [] };
    } catch (error) {
      this.notStarted(waiting);
      throw error;
    }
  }

  private send(
    { message, need, request, apart }: WaitingActivation,
    choice: PlacementChoice,
    why: string,
    waitedFor?: string,
  ): Receipt {
    const { placer, metrics, clock } = this.dependencies;
    const reason = apart === undefined ? why : `${why}; ${apart}`;
    const wait = waitedFor === undefined ? {} : { waitedFor };
    const receipt = placer.send(message, { need, request, choice, reason, ...wait });
    metrics.decided('placed');
    const { placement } = choice;
    if (placement !== undefined) this.dependencies.onPlaced?.(placement);
    metrics.waited(Math.max(0, clock.now() - message.transid[1]));
    return receipt;
  }

  /** Ends expired waits. Returns the event for the next pass, if there is one. */
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

  /** Begins actions; their results appear in agents' rows. */
  carryOut(actions: readonly Action[]): void {
    const { actuator, logger } = this.dependencies;
    for (const action of actions) {
      actuator.carryOut(action).catch((error: unknown) => {
        logger.warn({ ...action, error: String(error) }, 'an action on GPUs could not be started');
      });
    }
  }

  private placeByPolicy(event: SchedulingEvent): void {
    const { queue, placer, policy, refuser, options } = this.dependencies;
    if (!placer.isLeader) return;
    const { starts, late, order, rejected, actions, wakeAt } = policy.decide([...queue], event);
    if (wakeAt !== undefined) this.dependencies.wakeAt(wakeAt);
    this.carryOut(actions);
    const waitedFor = starts.map(({ waiting }) => reasonIn(queue.rejectedOf(waiting.message.activationId)));
    queue.decided(order, rejected, event.kind === 'arrival');
    for (const [waiting, reason] of late) {
      if (options.admission === 'best-effort') queue.demote(waiting);
      else refuser.refuse(waiting, gpuSloImpossible(reason));
    }
    for (const [at, one] of starts.entries()) {
      if (!policy.begins(one)) continue;
      try {
        this.forward(one, waitedFor[at]);
      } catch (error) {
        for (const left of starts.slice(at)) this.notStarted(left.waiting);
        throw error;
      }
    }
  }

  /** Releases the places and charges of a start that was not sent. */
  private notStarted({ message: { activationId } }: WaitingActivation): void {
    this.dependencies.placer.returned(activationId);
    this.dependencies.policy.returned(activationId);
  }

  private forward({ waiting, choice, start: { reason } }: PolicyStart, waitedFor: string | undefined): void {
    const { message, refusals } = waiting;
    const again = refusals.length === 0 ? message : { ...message, gpuRefusals: [...refusals] };
    const receipt = this.send({ ...waiting, message: again }, choice, reason, waitedFor);
    this.dependencies.queue.remove(waiting);
    const { placement } = choice;
    if (placement !== undefined) this.confirm({ message: again, placement, done: waiting.done }, receipt);
  }

  /** Ends the message of an activation when the invoker's topic has it. */
  private confirm(sent: Unconfirmed, receipt: Receipt): void {
    const { activationId } = sent.message;
    receipt.synced().then(
      () => {
        this.unconfirmed.delete(activationId);
        sent.done();
      },
      () => {
        this.unconfirmed.set(activationId, sent);
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
   * Repeats sends with the same placements until they succeed; an invoker takes each placement once. Activations that have
   * ended, or that were decided again, are skipped.
   */
  private sendAgain(): void {
    const { placer, queue, logger, isOver } = this.dependencies;
    if (this.unconfirmed.size > 0)
      logger.error(
        { activations: this.unconfirmed.size },
        'activations without a confirmed send are sent to their GPUs again',
      );
    for (const [activationId, sent] of this.unconfirmed) {
      const now = placer.placementOf(activationId);
      if (isOver(activationId) || queue.has(activationId) || (now !== undefined && now !== sent.placement)) {
        this.unconfirmed.delete(activationId);
        sent.done();
        continue;
      }
      try {
        this.confirm(sent, placer.sendAgain(sent.message, sent.placement));
        this.unconfirmed.delete(activationId);
      } catch {
        // The topic is full, or the log has failed: the next repetition tries again.
        this.sendAgainSoon();
      }
    }
  }
}

/** Dependencies of GpuRefuser. */
interface GpuRefuserDependencies {
  queue: GpuQueue;
  placer: GpuPlacer;
  /** Activations that have ended; no copy may run. */
  over: RecentIds;
  records: RecordWriter;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  clock: Clock;
  logger: Logger;
  metrics: GpuMetrics;
  /** Connection to other controllers; absent on a single controller. */
  handover?: Pick<GpuHandover, 'refused'>;
  /** Counts refused activations; absent: nothing is counted. */
  activity?: Pick<ActivityReporter, 'ended'>;
}

/** Ends queued activations that are not run. */
export class GpuRefuser {
  private onRefused: OnRefused = () => false;

  constructor(private readonly dependencies: GpuRefuserDependencies) {}

  /** Sets the function that is called for refused activations. */
  tell(onRefused: OnRefused): void {
    this.onRefused = onRefused;
  }

  /** Ends a sample that its agent returned or that an earlier process has left; its caller gets the error. */
  dropSample({ activationId }: ActivationMessage, reason: string): void {
    const { placer, over } = this.dependencies;
    over.add(activationId);
    placer.returned(activationId);
    this.onRefused(activationId, sampleNotRun(reason));
  }

  /** Ends an activation: its caller gets the error, or a record is stored. */
  refuse(waiting: WaitingActivation, error: ApiError): void {
    const { message } = waiting;
    const { queue, placer, over, clock, records, recordLevels, logger, metrics } = this.dependencies;
    queue.remove(waiting);
    over.add(message.activationId);
    metrics.decided('failed');
    placer.note(message, { rejected: [] }, error.message);
    logger.warn({ activationId: message.activationId, reason: error.message }, 'an activation was refused a GPU');
    this.dependencies.handover?.refused(message, error);
    this.dependencies.activity?.ended({
      namespace: message.user.namespace.name,
      isFailed: true,
      sloMs: waiting.need.sloMs,
      tookMs: Math.max(0, clock.now() - message.transid[1]),
    });
    if (
      this.onRefused(message.activationId, error) ||
      !isRecordKept(recordLevels, recordedCall(message), ActivationStatus.whiskError)
    ) {
      waiting.done();
      return;
    }
    const record = refusedRecord(message, clock.now(), error.message);
    records.add(activationDocument(record, clock.now()), waiting.done);
  }
}
