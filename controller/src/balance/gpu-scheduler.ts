import { RecentIds } from '@gpuwhisk/common/activations/recent-ids';
import { isRecorded } from '@gpuwhisk/common/activations/is-recorded';
import { isRecordKept, recordedCall } from '@gpuwhisk/common/activations/record-policy';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { TopicFullError } from '@gpuwhisk/common/bus/message-bus';
import type { Delivery, Receipt, Subscription } from '@gpuwhisk/common/bus/message-bus';
import type { Config } from '@gpuwhisk/common/config';
import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import { activationDocument } from '@gpuwhisk/common/entities/activation-codec';
import {
  gpuRefused,
  gpuSloImpossible,
  gpuTooLate,
  gpuWaitTooLong,
  noGpu,
  noSuchGpu,
  overloaded,
} from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { Decision, GpuNeed, GpuQueued } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import { unplacedTopic } from '@gpuwhisk/common/messages';
import type { ActivationMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { isOverdue } from '@gpuwhisk/gpu/order/earliest-deadline';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/place/least-loaded';
import { capacityProblem } from '@gpuwhisk/gpu/place/places';
import { gpuMetrics } from '@gpuwhisk/common/gpu-metrics';
import type { GpuMetrics } from '@gpuwhisk/common/gpu-metrics';
import { GpuPlacer } from './gpu-placer.js';
import type { GpuPlacerDependencies } from './gpu-placer.js';
import { GpuPolicy } from './gpu-policy.js';
import { GpuQueue, requestOf } from './gpu-queue.js';
import type { WaitingActivation } from './gpu-queue.js';
import { refusedRecord } from './refused-record.js';

/** What a GpuScheduler is made of. */
export interface GpuSchedulerDependencies extends GpuPlacerDependencies {
  store: ArtifactStore;
  records: RecordWriter;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  logger: Logger;
  metrics: Metrics;
  /** The controller's number: what waits is in topic `gpu<number>`. */
  instance: number;
  options: Config['gpu'];
}

/** Told of an activation that is not run; true if a caller waited and has got the error as its answer. */
export type OnRefused = (activationId: string, error: ApiError) => boolean;

/** How often an activation that was given back is decided again. */
const maxAgain = 3;
/** So many ids of activations that have ended, at least, are remembered. */
const rememberedIds = 10_000;
/** How often it is looked whether somebody waits in vain, ms. */
const lookMs = 250;

/**
 * Sends activations that need a GPU to the invoker that has one for them. Those that must wait, and those that agents
 * gave back, are in a durable topic meanwhile: each is done there when an invoker's topic has it or its end is recorded.
 */
export class GpuScheduler {
  private readonly queue = new GpuQueue();
  private readonly placer: GpuPlacer;
  /** Absent: the earliest deadline first, to the least loaded GPU. */
  private readonly policy: GpuPolicy | undefined;
  private readonly topic: string;
  private readonly metrics: GpuMetrics;
  /** Activations that have ended: no copy of theirs may run. */
  private readonly over = new RecentIds(rememberedIds);
  private subscription: Subscription | undefined;
  private onRefused: OnRefused = () => false;
  private passSet = false;
  private lookSet = false;
  private closed = false;

  constructor(private readonly dependencies: GpuSchedulerDependencies) {
    this.placer = new GpuPlacer(dependencies);
    const { policy, admission } = dependencies.options;
    if (policy !== 'least-loaded') this.policy = new GpuPolicy(this.placer, dependencies.clock, policy, admission);
    this.topic = unplacedTopic(dependencies.instance);
    this.metrics = gpuMetrics(dependencies.metrics.registry, () => this.queue.size);
    dependencies.table.onRow((node) => {
      this.placer.settle(node);
      this.policy?.seen(node);
      this.passSoon();
    });
  }

  /** Takes up what waits; the topic must exist. */
  async open(onRefused: OnRefused): Promise<void> {
    this.onRefused = onRefused;
    // The topic bounds what waits.
    const options = { maxInFlight: Infinity };
    const { bus } = this.dependencies;
    this.subscription = await bus.subscribe(this.topic, this.topic, options, (delivery) => this.take(delivery));
  }

  /** Leaves what waits to the next life. */
  async close(): Promise<void> {
    this.closed = true;
    await this.subscription?.close();
  }

  /** Activations that wait. */
  get waiting(): number {
    return this.queue.size;
  }

  /** Activations that were sent to a GPU and have not ended, as far as is known here. */
  get reserved(): number {
    return this.placer.reserved;
  }

  /** Those who wait, in the order of their turn. */
  queued(): GpuQueued[] {
    return this.queue.described(this.dependencies.clock.now());
  }

  /** The last decisions, the last one first. */
  decisions(): Decision[] {
    return this.placer.decisions();
  }

  /** Refuses what no GPU of the cluster can serve. Throws ApiError (503). */
  check(need: GpuNeed): void {
    const nodes = this.dependencies.table.nodes();
    if (!nodes.some(({ devices }) => devices.length > 0)) throw noGpu();
    const problem = capacityProblem(nodes, need);
    if (problem !== undefined) throw noSuchGpu(problem);
    if (this.closed || !this.placer.isEntitled) throw overloaded();
  }

  /** Sends an activation to an invoker, or has it wait. Throws TopicFullError, or another Error if the log has failed. */
  submit(message: ActivationMessage, need: GpuNeed): Receipt {
    const request = requestOf(message, need);
    // Those who wait have their turn first, and a policy looks at all of them together.
    const isFree = this.queue.size === 0 && this.policy === undefined;
    const choice: PlacementChoice = isFree ? this.placer.place(request) : { rejected: [] };
    if (choice.placement !== undefined) return this.send(message, need, request, choice);
    const unplaced: UnplacedMessage = { activation: message };
    const receipt = this.dependencies.bus.send(this.topic, unplaced as unknown as JsonObject);
    this.placer.note(message, choice, this.queue.size === 0 ? 'it waits' : 'it waits behind others');
    return receipt;
  }

  /** An activation's run is over. */
  ended(activationId: string): void {
    this.over.add(activationId);
    this.placer.ended(activationId);
    this.policy?.ended(activationId);
    // Its invoker had it from an earlier life, and ended it.
    this.queue.end(activationId);
    this.passSoon();
  }

  private take(delivery: Delivery): void {
    const { activation: message, refused } = delivery.message as unknown as UnplacedMessage;
    const done = (): void => delivery.done();
    // After a crash both this topic and an invoker's may have it.
    if (this.isSettled(message)) done();
    else if (delivery.redelivered) void this.takeUnlessRecorded(message, refused, done);
    else this.enqueue(message, refused, done);
  }

  /** An earlier life may have sent it to an invoker already. */
  private async takeUnlessRecorded(
    message: ActivationMessage,
    refused: string | undefined,
    done: () => void,
  ): Promise<void> {
    if ((await isRecorded(this.dependencies, message)) || this.isSettled(message)) done();
    else this.enqueue(message, refused, done);
  }

  /** Whether an activation that comes has ended, or runs where another copy of it was sent. */
  private isSettled({ activationId, gpu }: ActivationMessage): boolean {
    if (this.over.has(activationId)) return true;
    const sent = this.placer.placementOf(activationId);
    return sent !== undefined && !(gpu?.at === sent.at && gpu.epoch === sent.epoch && gpu.version === sent.version);
  }

  private enqueue(given: ActivationMessage, refused: string | undefined, done: () => void): void {
    const { gpu: placement, gpuRefusals = [], ...message } = given;
    const { activationId, gpuNeed: need } = message;
    if (need === undefined) throw new Error(`activation ${activationId} waits for a GPU and asks for none`);
    const waiting: WaitingActivation = {
      message,
      need,
      request: requestOf(message, need),
      arrivedMs: message.transid[1],
      sloMs: need.sloMs,
      refusals: gpuRefusals,
      refusedAtMs: new Map(),
      done,
    };
    // It comes back from where it was sent.
    if (placement !== undefined) {
      this.placer.returned(activationId);
      this.policy?.returned(activationId);
    }
    if (refused !== undefined) {
      waiting.refusals = [...gpuRefusals, refused];
      if (placement) waiting.refusedAtMs = new Map([[placement.invoker, this.dependencies.clock.monotonicMs()]]);
      this.metrics.decided('returned');
      this.placer.note(message, { rejected: [] }, `its agent refused: ${refused}`);
    }
    this.queue.add(waiting);
    if (waiting.refusals.length > maxAgain) this.fail(waiting, gpuRefused(waiting.refusals.length, refused ?? ''));
    else this.passSoon();
  }

  private passSoon(): void {
    if (this.passSet || this.queue.size === 0) return;
    this.passSet = true;
    this.dependencies.clock.defer(() => {
      this.passSet = false;
      this.pass();
    });
  }

  /** Places those whose turn it is and for whom there is room, and ends those who waited in vain. */
  private pass(): void {
    if (this.closed) return;
    const nowMs = this.dependencies.clock.now();
    this.endWaits(nowMs);
    try {
      if (this.policy === undefined) this.placeInTurn(nowMs);
      else this.placeByPolicy(this.policy);
    } catch (error) {
      // The invoker's topic is full, or the log fails: they go on to wait.
      if (!(error instanceof TopicFullError)) {
        this.dependencies.logger.error({ error: String(error) }, 'an activation could not be sent to its GPU');
      }
    }
    if (this.queue.size === 0 || this.lookSet) return;
    this.lookSet = true;
    this.dependencies.clock.setBackgroundTimer(lookMs, () => {
      this.lookSet = false;
      this.passSoon();
    });
  }

  private endWaits(nowMs: number): void {
    const { admission, maxWaitMs } = this.dependencies.options;
    for (const late of this.queue.late(nowMs)) {
      if (admission === 'refuse') this.fail(late, gpuTooLate(late.need.sloMs ?? 0));
      else this.queue.demote(late);
    }
    for (const spent of this.queue.spent(nowMs, maxWaitMs)) this.fail(spent, gpuWaitTooLong(maxWaitMs));
  }

  private placeInTurn(nowMs: number): void {
    const kept = new Set<string>();
    /** What was asked for in vain: what is given out to others makes no room. */
    const inVain = new Set<string>();
    for (const waiting of this.queue.inTurn(nowMs)) {
      const { request, refusedAtMs } = waiting;
      const asked = JSON.stringify([request, [...refusedAtMs]]);
      if (inVain.has(asked)) continue;
      const limits = { kept, refusedAtMs };
      const choice = this.placer.place(request, limits);
      if (choice.placement !== undefined) {
        this.forward(waiting, choice);
        continue;
      }
      inVain.add(asked);
      if (!isOverdue(waiting, nowMs)) continue;
      for (const place of this.placer.placesToKeep(request, limits)) kept.add(place);
    }
  }

  private placeByPolicy(policy: GpuPolicy): void {
    if (!this.placer.isEntitled) return;
    // Joining a batch takes nothing of a GPU that its instance does not have.
    for (const waiting of [...this.queue].filter(({ need }) => need.batch > 1)) {
      const choice = this.placer.place(waiting.request, { kept: new Set(), refusedAtMs: waiting.refusedAtMs });
      if (choice.placement?.joins) this.forward(waiting, choice);
    }
    const { starts, late, order, rejected } = policy.decide([...this.queue]);
    this.queue.decided(order, rejected);
    for (const [waiting, reason] of late) {
      if (this.dependencies.options.admission === 'best-effort') this.queue.demote(waiting);
      else this.fail(waiting, gpuSloImpossible(reason));
    }
    for (const { waiting, choose } of starts) {
      const { request, choice } = choose();
      if (choice.placement !== undefined) this.forward({ ...waiting, request }, choice);
    }
  }

  private send(message: ActivationMessage, need: GpuNeed, request: PlacementRequest, choice: PlacementChoice): Receipt {
    const receipt = this.placer.send(message, need, request, choice);
    this.metrics.decided('placed');
    this.metrics.waited(Math.max(0, this.dependencies.clock.now() - message.transid[1]));
    return receipt;
  }

  private forward(waiting: WaitingActivation, choice: PlacementChoice): void {
    const { message, need, request, refusals } = waiting;
    const again = refusals.length === 0 ? message : { ...message, gpuRefusals: [...refusals] };
    const receipt = this.send(again, need, request, choice);
    this.queue.remove(waiting);
    receipt.synced().then(waiting.done, (error: unknown) => {
      // It stays in its topic, for the next life.
      this.dependencies.logger.error({ error: String(error) }, 'an activation was sent, and may not last');
    });
  }

  /** Ends one that is not run: its caller is told, or there is a record of it. */
  private fail(waiting: WaitingActivation, error: ApiError): void {
    const { message } = waiting;
    const { clock, records, recordLevels, logger } = this.dependencies;
    this.queue.remove(waiting);
    this.over.add(message.activationId);
    this.metrics.decided('failed');
    this.placer.note(message, { rejected: [] }, error.message);
    logger.warn({ activationId: message.activationId, reason: error.message }, 'an activation got no GPU');
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
