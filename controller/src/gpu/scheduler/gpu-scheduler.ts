import { RecentIds } from '@gpuwhisk/common/short-lived-map';
import type { ActivityReporter } from '@gpuwhisk/common/activations/activity';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import type { Receipt } from '@gpuwhisk/common/bus/message-bus';
import type { Config } from '@gpuwhisk/common/config';
import {
  gpuRefused,
  gpuShareTooLarge,
  instanceNotLaunched,
  noGpu,
  noSuchGpu,
  overloaded,
  sampleNotRun,
} from '@gpuwhisk/common/errors';
import type { ApiError } from '@gpuwhisk/common/errors';
import type { GpuNeed, GpuQueued, Placement, Share, Workload } from '@gpuwhisk/common/gpu';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { Metrics } from '@gpuwhisk/common/metrics';
import { unplacedTopic, type ActivationMessage, type UnplacedMessage } from '@gpuwhisk/common/messages';
import type { Timer } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { shareAt } from '@gpuwhisk/gpu/view/requests';
import type { PolicyTrial } from '@gpuwhisk/gpu/simulate/try-policy';
import type { Action, Actuator } from '@gpuwhisk/gpu/view/decision';
import { FunctionLog } from '@gpuwhisk/gpu/view/function-log';
import { classAtOrAbove } from '@gpuwhisk/gpu/view/shares';
import { capacityProblem } from '@gpuwhisk/gpu/stages/geometry/capacity';
import type { InstanceState, SchedulingEvent, View } from '@gpuwhisk/gpu/view/view';
import { gpuMetrics, type GpuMetrics } from '@gpuwhisk/common/gpu-metrics';
import { isCopyOf } from '../handover/gpu-handover.js';
import type { Launch, SampleRun } from '../../invoke/invoke-service.js';
import type { DesiredState } from '../state/desired-state.js';
import type { PolicySetting } from './policy-setting.js';
import { lastRequestOf, launchOf, ArrivalLog, GpuEvents, GpuQueue, requestOf, waitingOf } from './gpu-queue.js';
import type { LastRequest, WaitingActivation } from './gpu-queue.js';
import { LiveActuator, type LiveActuatorParts, type Procurer } from './live-actuator.js';
import type { GpuHandover, OnRefused } from '../handover/gpu-handover.js';
import { GpuIntake } from '../handover/gpu-intake.js';
import { needApart } from './apart.js';
import { seenInstances } from './cluster-view.js';
import type { KnownInstances } from './cluster-view.js';
import type { SampledPlace } from './running-places.js';
import { GpuPass, GpuRefuser } from './gpu-pass.js';
import { GpuPlacer } from './gpu-placer.js';
import type { GpuPlacerDependencies } from './gpu-placer.js';
import { GpuPolicy, type GpuPolicyParts } from './gpu-policy.js';
import { PolicyTicks } from './policy-ticks.js';
import { GpuSweep } from '../handover/gpu-sweep.js';

/** Called with the UUIDs of the devices or MIG instances that new work is bound to, or undefined if any will do. */
export type OnWanted = (gpus: readonly string[] | undefined) => void;

/** Dependencies of GpuScheduler. */
export interface GpuSchedulerDependencies extends GpuPlacerDependencies, Pick<GpuPolicyParts, 'onDecided'> {
  store: ArtifactStore;
  records: RecordWriter;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  logger: Logger;
  metrics: Metrics;
  /** The controller's number; its queue is in topic `gpu<number>`. */
  instance: number;
  options: Config['gpu'];
  random: Random;
  desired: Pick<DesiredState, 'retire' | 'reshare' | 'cut' | 'isRetiring'>;
  /** `whenSuffering`: absent if they do not report. */
  workloads: { readonly shown: readonly Workload[]; whenSuffering?(listener: () => void): void };
  procurer?: Procurer;
  /** The policy that operators have set; absent: it is the configured one for ever. */
  setting?: Pick<PolicySetting, 'choice' | 'onChange' | 'faulted' | 'unusable'>;
  /** Connection to the leader; absent if this controller is always the leader. */
  handover?: GpuHandover;
  /** Counts refused activations; absent: nothing is counted. */
  activity?: Pick<ActivityReporter, 'ended'>;
}

/** Most repeated decisions about a returned activation. */
const maxAgain = 3;
/** Least number of ended activations whose ids are remembered. */
const rememberedIds = 10_000;
/** Interval of the search for activations that have waited too long, ms. */
const lookMs = 250;

/**
 * Sends activations that need a GPU to invokers. Waiting and returned activations are in a durable topic; each is done there
 * when an invoker's topic has it or its end is recorded.
 */
export class GpuScheduler {
  private readonly queue = new GpuQueue();
  private readonly arrivals = new ArrivalLog();
  private readonly functions = new FunctionLog<LastRequest>();
  /** Launches that have not ended. */
  private readonly launching = new Set<string>();
  private readonly known: KnownInstances = {
    heldOn: (id) => this.placer.heldOn(id),
    isLaunch: (activationId) => this.launching.has(activationId),
    isRetiring: (invoker, container) => this.dependencies.desired.isRetiring(invoker, container),
  };
  /** Carries out the policy's actions. */
  readonly actuator: Actuator;
  private readonly placer: GpuPlacer;
  private readonly policy: GpuPolicy;
  /** State of the policy's stage geometry; undefined: it has none. */
  readonly geometry = (): GpuPolicy['geometry'] => this.policy.geometry;
  readonly triedSets = (): ReturnType<GpuPolicy['triedSets']> => this.policy.triedSets();
  private readonly topic: string;
  private wake: Timer | undefined;
  private readonly ticks: PolicyTicks;
  private readonly metrics: GpuMetrics;
  /** Activations that have ended; no copy may run. */
  private readonly over = new RecentIds(rememberedIds);
  private readonly refuser: GpuRefuser;
  private readonly passes: GpuPass;
  private readonly intake: GpuIntake;
  private readonly sweep: GpuSweep;
  private readonly events = new GpuEvents();
  private onWanted: OnWanted = () => undefined;
  private passSet = false;
  private lookSet = false;
  private closed = false;

  constructor(private readonly dependencies: GpuSchedulerDependencies) {
    const { setting, options, workloads, lease } = dependencies;
    const placer = (this.placer = new GpuPlacer(dependencies, () => this.policy.name));
    this.topic = unplacedTopic(dependencies.instance);
    this.metrics = gpuMetrics(dependencies.metrics.registry, {
      waiting: () => this.queue.size,
      epoch: () => dependencies.lease.epoch,
      geometry: () => this.policy.geometryFigures,
    });
    this.metrics.leased(lease.epoch);
    lease.onChange?.(() => this.metrics.leased(lease.epoch));
    this.policy = new GpuPolicy({
      ...dependencies,
      options: { ...options, policy: setting?.choice ?? options.policy },
      onFault: (fault) => setting?.faulted(fault),
      placer,
      metrics: this.metrics,
      functions: this.functions,
      instances: this.known,
      workloads: () => workloads.shown,
    });
    this.ticks = new PolicyTicks({ clock: dependencies.clock, policy: this.policy, act: (kind) => this.act(kind) });
    const parts = { ...dependencies, queue: this.queue, placer, metrics: this.metrics };
    this.refuser = new GpuRefuser({ ...parts, over: this.over });
    const onPlaced = ({ slice, devices }: Placement): void => this.onWanted(slice === undefined ? devices : [slice]);
    const isOver = (activationId: string): boolean => this.over.has(activationId);
    const launch: LiveActuatorParts['launch'] = (action) => this.launchAhead(action);
    const actuator = (this.actuator = new LiveActuator({ ...dependencies, launch, metrics: this.metrics }));
    const wakeAt = (at: number): void => this.wakeAt(at);
    const { policy, refuser } = this;
    this.passes = new GpuPass({ ...parts, policy, refuser, actuator, isOver, wakeAt, onPlaced });
    // The run's time is not known if its end is found by the search.
    const ended = (activationId: string): void => this.ended(activationId, false);
    this.sweep = new GpuSweep({ ...dependencies, placer, ended });
    this.intake = new GpuIntake({
      ...dependencies,
      topic: this.topic,
      isSettled: (message) => this.isSettled(message),
      dropSample: (message, reason) => {
        this.policy.returned(message.activationId);
        this.refuser.dropSample(message, reason);
      },
      enqueue: (unplaced, done) => this.enqueue(unplaced, done),
    });
    setting?.onChange(() => this.usePolicy(setting));
    dependencies.table.onRow((node) => {
      for (const lost of this.placer.settle(node)) this.policy.lost(lost);
      this.policy.seen(node);
      this.passSoon({ kind: 'timer' }, this.policy.movesOn(node));
    });
  }

  /** Takes up queued activations; the topic must exist. */
  async open(onRefused: OnRefused): Promise<void> {
    this.refuser.tell(onRefused);
    await this.intake.open();
    if (this.dependencies.handover !== undefined) this.sweep.open();
    await this.dependencies.handover?.open({
      take: (delivery) => this.intake.takeOfOthers(delivery),
      lost: () => this.handOver(),
      ended: (activationId, succeeded, inputSize) => this.ended(activationId, succeeded, inputSize),
      refused: onRefused,
    });
    this.ticks.follow();
    this.dependencies.workloads.whenSuffering?.(() => this.ticks.answerSoon());
  }

  /** Goes on with the policy that is now in force. */
  private usePolicy(setting: NonNullable<GpuSchedulerDependencies['setting']>): void {
    if (this.closed) return;
    try {
      this.policy.use(setting.choice);
    } catch (error) {
      setting.unusable(String(error));
      return;
    }
    this.ticks.follow();
    this.passSoon({ kind: 'timer' });
  }

  /** Stops; queued activations stay in the topic for the next process start. */
  async close(): Promise<void> {
    this.closed = true;
    this.ticks.close();
    this.passes.close();
    this.sweep.close();
    await this.dependencies.handover?.close();
    await this.intake.close();
  }

  /** The epoch of this controller's term as the leader; undefined while another controller may be the leader. */
  get epoch(): number | undefined {
    return this.dependencies.lease.epoch;
  }

  /** Whether an activation waits for a GPU in this controller's queue. */
  isQueued(activationId: string): boolean {
    return this.queue.has(activationId);
  }

  /** Ends a queued activation with an error; does nothing if it is not queued. */
  cancel(activationId: string, error: ApiError): void {
    const waiting = this.queue.get(activationId);
    if (waiting !== undefined) this.refuser.refuse(waiting, error);
  }

  /** Number of queued activations. */
  get waiting(): number {
    return this.queue.size;
  }

  /** Number of activations with a reservation whose end is not known here. */
  get reserved(): number {
    return this.placer.reserved;
  }

  /** Input for trials of policies: the arrivals since `sinceMs` (epoch ms) at this leader, and its GPUs. */
  trialSince(sinceMs: number): Pick<PolicyTrial, 'tasks' | 'places' | 'models'> {
    return this.policy.trialOf(this.arrivals.since(sinceMs));
  }

  /** The queued activations in order. */
  queued(): GpuQueued[] {
    return this.queue.described(this.dependencies.clock.monotonicMs());
  }

  /** The last decisions, latest first. */
  decisions(): DecisionRecord[] {
    return this.dependencies.performanceData.decisions.latest();
  }

  /**
   * The instances of functions. The leader knows those whose process has yet to start; on another controller they are missing,
   * and launched ones count as running while they load.
   */
  instances(): InstanceState[] {
    return seenInstances(this.placer.accounts(), this.known);
  }

  /** The view that a policy sees now. Throws an Error if another controller is the leader. */
  view(): View {
    return this.policy.viewOf([...this.queue]);
  }

  /**
   * The present view and all else that a decision depends on, as JSON. Throws an Error if another controller is the leader.
   */
  savedView(): JsonObject {
    return this.policy.saved([...this.queue], { kind: 'timer' });
  }

  /** Refuses a need that no GPU of the cluster can serve. Throws ApiError (503). */
  check(need: GpuNeed): void {
    const nodes = this.dependencies.table.nodes();
    if (!nodes.some(({ devices }) => devices.length > 0)) throw noGpu();
    const problem = capacityProblem(nodes, this.policy.spansDevices ? need : { ...need, spans: 1 });
    const hint = this.policy.spansDevices || need.spans === undefined ? '' : '; the policy in force splits no function';
    if (problem !== undefined) throw noSuchGpu(problem + hint);
    if (this.closed || (!this.placer.isLeader && this.dependencies.handover === undefined)) throw overloaded();
  }

  /** Sends an activation to an invoker or queues it. Throws TopicFullError, or another Error if the log has failed. */
  submit(message: ActivationMessage, need: GpuNeed): Receipt {
    const { handover } = this.dependencies;
    if (handover?.isElsewhere) return handover.send({ activation: message });
    // Queued activations come first, and most policies look at simultaneous arrivals together.
    const { size: ahead } = this.queue;
    const isFree = ahead === 0 && this.policy.takesAsTheyCome && this.placer.isLeader;
    const { sent, rejected } = isFree ? this.passes.sendAtOnce(message, need) : { sent: undefined, rejected: [] };
    if (sent !== undefined) {
      this.arrived(message, need);
      return sent;
    }
    const unplaced: UnplacedMessage = { activation: message };
    const receipt = this.dependencies.bus.send(this.topic, unplaced as unknown as JsonObject);
    this.placer.note(message, { rejected }, ahead === 0 ? 'it waits' : 'it waits behind others', { ahead });
    return receipt;
  }

  /**
   * Sends a sample to its GPU. Throws ApiError (503) if the GPU has no room, work is waiting or another controller is the
   * leader. Also throws TopicFullError, or another Error if the log has failed.
   */
  submitSample(message: ActivationMessage, need: GpuNeed, sample: SampleRun): Receipt {
    const { policy, placer } = this;
    if (this.queue.size > 0 || this.closed || !placer.isLeader) throw overloaded();
    const { request, choice } = policy.placeSample(message, need, sample);
    if (choice.placement === undefined) {
      const { reason = 'it is not there' } = choice.rejected.find(({ what }) => what === sample.gpu) ?? {};
      throw sampleNotRun(reason);
    }
    try {
      const { maxMs, batch = 1 } = sample;
      const run = { maxMs, ...(batch > 1 && { batch }) };
      return placer.send({ ...message, sample: run }, { need, request, choice, reason: 'a sample' });
    } catch (error) {
      policy.returned(message.activationId);
      throw error;
    }
  }

  /**
   * Sends the launch of an instance. Throws ApiError (429) for a larger share than its namespace may have. Throws ApiError
   * (503) if its GPUs have no room or another controller is the leader. Also throws TopicFullError, or another Error if the
   * log has failed.
   */
  submitLaunch(
    given: ActivationMessage,
    wanted: GpuNeed,
    { gpus, shareClass, within }: Launch & { within?: Pick<Share, 'smRequest' | 'smLimit'> },
  ): Receipt {
    const { placer } = this;
    const need = needApart(given, wanted, this.dependencies.performanceData.faults);
    const message = { ...given, gpuNeed: need };
    if (this.closed) throw overloaded();
    if (!placer.isLeader) throw instanceNotLaunched('another controller decides about GPUs, ask that one');
    const { maxShareClass = 100 } = need;
    if (shareClass !== undefined && shareClass > maxShareClass) throw gpuShareTooLarge(shareClass, maxShareClass);
    const asked = requestOf(message, need);
    const fraction = shareClass === undefined ? undefined : shareClass / 100;
    const share = fraction === undefined ? asked.share : { ...asked.share, ...shareAt(fraction, need.memoryMiB) };
    const request = { ...asked, share: { ...share, ...within } };
    const places = gpus ?? this.policy.placesForInstance(message, need, request);
    if (places?.length === 0) throw instanceNotLaunched('the policy finds no place where it would do now');
    const choice = placer.placeNew(request, places);
    if (choice.placement === undefined) {
      const { what = '', reason = 'there is no GPU that the instance may use' } = choice.rejected[0] ?? {};
      throw instanceNotLaunched(what === '' ? reason : `${what}: ${reason}`);
    }
    const receipt = placer.send(
      { ...message, launch: true },
      { need, request, choice, reason: 'launched ahead of requests' },
    );
    this.launching.add(message.activationId);
    return receipt;
  }

  /** Sends a launch that a policy has decided. Returns the reason if it is refused, else undefined. */
  private launchAhead(wanted: Action & { kind: 'launch' }): string | undefined {
    const { function: action, namespace, gpus, share, limit: smLimit = share, request: smRequest = smLimit } = wanted;
    const { clock, random } = this.dependencies;
    const last = this.functions.of({ action, namespace })?.last;
    if (last === undefined) return `no request of '${action}' has come`;
    const launched = launchOf(last, clock.now(), random);
    try {
      const within = { smRequest, smLimit };
      this.submitLaunch(launched, last.need, { gpus: [...gpus], shareClass: classAtOrAbove(share), within });
      return undefined;
    } catch (error) {
      return (error as Error).message;
    }
  }

  /** Has the policy decide about nodes, if this controller is the leader. */
  procure(): void {
    if (this.policy.procures) this.act('procure');
  }

  /** The GPUs on which samples could be measured; empty if no policy decides or another controller is the leader. */
  sampledPlaces(): SampledPlace[] {
    return this.placer.isLeader ? this.policy.sampledPlaces() : [];
  }

  /** Calls `listener` when work arrives for GPUs. */
  tellWanted(listener: OnWanted): void {
    this.onWanted = listener;
  }

  /**
   * Ends an activation's run; its time is learned only if it has succeeded. `inputSize`: the size of its input if the function
   * has reported one.
   */
  ended(activationId: string, succeeded: boolean, inputSize?: number): void {
    this.over.add(activationId);
    this.launching.delete(activationId);
    this.dependencies.handover?.ended(activationId, succeeded, inputSize);
    const { slice, devices = [] } = this.placer.placementOf(activationId) ?? {};
    const gpu = slice ?? devices[0];
    this.placer.ended(activationId);
    this.policy.ended(activationId, succeeded, inputSize);
    // The invoker had the activation from an earlier process of this controller, and has ended it.
    this.queue.end(activationId);
    this.passSoon(gpu === undefined ? { kind: 'timer' } : { kind: 'completion', task: activationId, gpu });
  }

  /** Sends the queued activations to the new leader. */
  private handOver(): void {
    this.policy.handedOver();
    this.intake.termEnded();
    for (const waiting of [...this.queue]) {
      this.queue.remove(waiting);
      this.intake.handOver(waiting);
    }
  }

  /** Whether an arriving activation has ended, or runs at the place to which another copy was sent. */
  private isSettled(message: ActivationMessage): boolean {
    const { activationId } = message;
    if (this.over.has(activationId)) return true;
    const sent = this.placer.placementOf(activationId);
    return sent !== undefined && !isCopyOf(message, sent);
  }

  private enqueue({ activation: given, refused }: UnplacedMessage, done: () => void): void {
    const { gpu: placement, gpuRefusals = [], ...message } = given;
    const { activationId, gpuNeed: need } = message;
    if (need === undefined) throw new Error(`activation ${activationId} waits for a GPU and asks for none`);
    const { clock } = this.dependencies;
    const waiting: WaitingActivation = { ...waitingOf(message, need, clock), refusals: gpuRefusals, done };
    // The message comes back from the place to which it was sent.
    if (placement !== undefined) {
      this.placer.returned(activationId);
      this.policy.returned(activationId);
    }
    if (refused !== undefined) {
      waiting.refusals = [...gpuRefusals, refused];
      if (placement) waiting.refusedAtMs = new Map([[placement.invoker, this.dependencies.clock.monotonicMs()]]);
      this.metrics.decided('returned');
      this.placer.note(message, { rejected: [] }, `its agent refused: ${refused}`);
    }
    if (refused === undefined && placement === undefined) this.arrived(message, need);
    this.queue.add(waiting);
    if (waiting.refusals.length > maxAgain)
      this.refuser.refuse(waiting, gpuRefused(waiting.refusals.length, refused ?? ''));
    // A returned activation may have freed room at its place.
    else this.passSoon(refused === undefined ? { kind: 'arrival', task: activationId } : { kind: 'timer' });
  }

  /** Notes a request that this controller has to place. Runs of training jobs are no requests. */
  private arrived(message: ActivationMessage, need: GpuNeed): void {
    if (message.training !== undefined) return;
    this.arrivals.add(message, need);
    const { action, user, transid } = message;
    const work = { action: `/${action.path}/${action.name}`, namespace: user.namespace.name };
    this.functions.arrived(work, lastRequestOf(message, need), transid[1]);
  }

  private act(kind: Parameters<GpuPolicy['actionsOn']>[0]): void {
    if (!this.closed && this.placer.isLeader) this.passes.carryOut(this.policy.actionsOn(kind, this.queue));
  }

  /** Requests a pass at `at` (epoch ms), unless the next look at the queue is earlier. */
  private wakeAt(at: number): void {
    const { clock } = this.dependencies;
    const inMs = Math.max(1, at - clock.now());
    if (!(inMs < lookMs)) return;
    this.wake?.cancel();
    this.wake = clock.setBackgroundTimer(inMs, () => this.passSoon({ kind: 'timer' }));
  }

  /** Requests a pass if anything waits, or if shares may have to be moved. */
  private passSoon(event: SchedulingEvent, moves = false): void {
    if (this.queue.size === 0 && !moves) return;
    this.events.add(event);
    if (this.passSet) return;
    this.passSet = true;
    this.dependencies.clock.defer(() => {
      this.passSet = false;
      this.pass();
    });
  }

  /** Runs a pass over the queue, and ends activations that have waited too long. */
  private pass(): void {
    if (this.closed) return;
    this.passes.run(this.events.take());
    if (this.queue.size > 0) this.onWanted(undefined);
    if (this.queue.size === 0 || this.lookSet) return;
    this.lookSet = true;
    this.dependencies.clock.setBackgroundTimer(lookMs, () => {
      this.lookSet = false;
      this.passSoon({ kind: 'timer' });
    });
  }
}
