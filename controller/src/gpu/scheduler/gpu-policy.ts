import type { Config } from '@gpuwhisk/common/config';
import type { GpuNeed, NodeStatus, Workload } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { GpuMetrics } from '@gpuwhisk/common/gpu-metrics';
import type { Logger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { tasksMiB } from '@gpuwhisk/gpu/ledger/account';
import type { PlacementChoice, PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import type { FunctionState, KnownRuns, SchedulingEvent, Task, View } from '@gpuwhisk/gpu/view/view';
import type { Action, Decision, ObservedRun, Start, TaskRejection } from '@gpuwhisk/gpu/view/decision';
import type { FunctionLog } from '@gpuwhisk/gpu/view/function-log';
import { geometryFigures } from '@gpuwhisk/gpu/stages/geometry/geometry';
import type { GeometryReport } from '@gpuwhisk/gpu/stages/geometry/geometry';
import type { Policy } from '@gpuwhisk/gpu/policies/policy';
import { profiledRates } from '@gpuwhisk/gpu/algorithms/dilu/served';
import { kindOf, kindsOf } from '@gpuwhisk/gpu/ledger/places';
import { takesWork } from '@gpuwhisk/gpu/ledger/used-places';
import type { FaultyPass } from '@gpuwhisk/gpu/policies/guarded';
import { encodePass, encodeWithin } from '@gpuwhisk/gpu/policies/saved-pass';
import type { PolicyChoice } from '@gpuwhisk/gpu/policies/make-policy';
import type { PassInputs } from '@gpuwhisk/gpu/policies/saved-pass';
import { RunLog, steadyNeighbours } from '@gpuwhisk/gpu/stages/profile/run-log';
import type { LoggedRun } from '@gpuwhisk/gpu/stages/profile/run-log';
import type { PolicyTrial } from '@gpuwhisk/gpu/simulate/try-policy';
import { encodeModel } from '@gpuwhisk/gpu/predict/slowdown-model';
import type { Arrival, LastRequest, WaitingActivation } from './gpu-queue.js';
import { aloneOf, aloneText, keepApart } from './apart.js';
import { Arrivals, calledFunction, knownFunctions, requestOf } from './gpu-queue.js';
import type { GpuPlacer, Sent } from './gpu-placer.js';
import { isUndisturbed } from '../learning/feedback.js';
import type { KnownFunctions } from '../learning/degradations.js';
import type { PerformanceData } from '../learning/performance-data.js';
import { hasForeignProcesses } from '../learning/activity-profiler.js';
import { policyInForce } from './policy-in-force.js';
import type { PolicyInForce } from './policy-in-force.js';
import { mayMoveShares, movedPlaces } from './cluster-view.js';
import { RunningPlaces } from './running-places.js';
import type { SampledPlace } from './running-places.js';
import type { Procurer } from './live-actuator.js';
import { viewOf } from './live-view.js';
import { isDisturbed, runFacts } from './run-facts.js';
import { TriedSets } from './tried-sets.js';
import { SeenWorkloads } from './seen-workloads.js';
import type { KnownInstances } from './cluster-view.js';
import { aloneTimesOf, askedOf, taskOf, withReportedSize } from './waiting-task.js';
import type { Asked } from './waiting-task.js';
import type { SampleRun } from '../../invoke/invoke-service.js';

/** An activation that starts, as the policy has decided. */
export interface PolicyStart {
  waiting: WaitingActivation;
  task: Task;
  start: Start;
  /** Without a placement: its places could not take it. */
  choice: PlacementChoice;
}

/** A policy's decision about the queued activations. */
export interface PolicyDecision {
  /** The starts in order; their placements are held. */
  starts: PolicyStart[];
  /** Activations that cannot meet their SLO, with the reason. */
  late: [WaitingActivation, string][];
  /** Ids of the activations that go on waiting, next one first; and their rejected alternatives. */
  order: readonly string[];
  rejected: readonly TaskRejection[];
  actions: readonly Action[];
  /** When the policy shall decide again without an event, epoch ms; absent: at no particular time. */
  wakeAt?: number;
}

/** What is shown to the models of degradations while the policy asks for none. */
const noFunctions: KnownFunctions = { all: () => [], ofKey: () => undefined };

/** The namespace of samples, so that they take no other namespace's turn or share of the GPUs. */
const sampler = 'whisk.system';

/** Interval at which a fault is logged with its view, ms; and most characters of the view. */
const [viewLogMs, maxLoggedBytes] = [10_000, 64 * 1024];

/** Dependencies of GpuPolicy. */
export interface GpuPolicyParts {
  placer: GpuPlacer;
  clock: Clock;
  performanceData: PerformanceData;
  logger: Logger;
  metrics: Pick<GpuMetrics, 'policyFault'>;
  options: { policy: PolicyChoice } & Pick<Config['gpu'], 'admission'>;
  /** The last request of each function, and its arrivals. */
  functions: FunctionLog<LastRequest>;
  instances: Pick<KnownInstances, 'isLaunch' | 'isRetiring'>;
  /** Processes on GPUs that are not the platform's. */
  workloads(): readonly Workload[];
  /** Rented machines; absent: there are none. */
  procurer?: Pick<Procurer, 'state'>;
  /** Called with every fault of the policy in force; absent: faults are only counted. */
  onFault?(fault: string): void;
  /** Called with every decision and the saved view behind it; absent: views are not saved. */
  onDecided?(saved: JsonObject, decision: Decision): void;
}

/** Lets a policy of gpu/ decide about activations, with agents' rows and performance data as input. */
export class GpuPolicy {
  private readonly runs = new RunLog();
  private readonly places: RunningPlaces;
  private readonly arrivals = new Arrivals();
  private readonly workloads: SeenWorkloads;
  private inForce: PolicyInForce;
  private viewLoggedMs = -Infinity;

  constructor(private readonly parts: GpuPolicyParts) {
    const { performanceData } = parts;
    this.places = new RunningPlaces(parts.placer, this.runs, parts.clock);
    this.workloads = new SeenWorkloads(parts.workloads);
    performanceData.forecasts.showFunctions(() => Array.from(parts.functions.all(), calledFunction));
    this.inForce = this.made(parts.options.policy);
  }

  /**
   * Puts another policy in force, from the next decision on. Runs go on, and what was learned stays; what only its stages knew
   * begins empty, as after a restart. Throws RangeError as `compositionOf` does; the former policy stays in force then.
   */
  use(choice: PolicyChoice): void {
    this.inForce = this.made(choice);
  }

  private made(choice: PolicyChoice): PolicyInForce {
    const { performanceData, options, functions } = this.parts;
    const parts = { performanceData, admission: options.admission };
    const made = policyInForce(choice, parts, (...fault) => this.failed(...fault));
    performanceData.degradations.showFunctions(made.predictsDegradation ? knownFunctions(functions) : noFunctions);
    return made;
  }

  private get policy(): Policy {
    return this.inForce.policy;
  }

  /** Whether an activation that arrives at an empty queue is decided at once. */
  get takesAsTheyCome(): boolean {
    return this.inForce.takesAsTheyCome;
  }

  /** Whether the policy puts parts of a function on several devices. */
  get spansDevices(): boolean {
    return this.inForce.spansDevices;
  }

  /** The name of the policy in force, with changed stages and settings. */
  get name(): string {
    return this.policy.name;
  }

  /** Whether the policy scales: it decides each second which instances functions should have. */
  get scales(): boolean {
    return this.policy.scales === true;
  }

  /** Whether the policy is told when a workload suffers. */
  get protects(): boolean {
    return this.policy.scales === true || this.policy.protects === true;
  }

  /** Whether the policy takes nodes and gives them back. */
  get procures(): boolean {
    return this.policy.procures === true;
  }

  /** State of the policy's stage geometry; undefined: it has none. */
  get geometry(): GeometryReport | undefined {
    return this.policy.geometry?.();
  }

  get geometryFigures(): Record<string, number> {
    return geometryFigures(this.geometry);
  }

  /** Whether a row of a node calls for a pass though nothing waits, as shares of what runs there may have to be moved. */
  movesOn(node: NodeStatus): boolean {
    return this.policy.moves === true && mayMoveShares(node);
  }

  /** Decides about the queued activations after `event`. */
  decide(waiting: readonly WaitingActivation[], event: SchedulingEvent): PolicyDecision {
    const byId = new Map(waiting.map((one) => [one.message.activationId, one]));
    const view = this.viewOf(waiting);
    const { waiting: tasks } = view;
    const { onDecided } = this.parts;
    const saved = onDecided && this.encode(view, event);
    const decision = this.policy.decide(view, event);
    if (saved !== undefined) onDecided?.(saved, decision);
    for (const sharing of decision.sharings ?? []) this.parts.performanceData.metrics.shared(sharing);
    // A run on a GPU where shares move says nothing of its function's time at its own share.
    if (this.policy.moves === true) for (const id of movedPlaces(view, decision)) this.runs.moved(id);
    const taskById = new Map(tasks.map((task) => [task.id, task]));
    return {
      starts: decision.starts.map((start) => {
        const { task: id, choice = { rejected: [] } } = start;
        return { waiting: ofTask(byId, id), task: ofTask(taskById, id), start, choice };
      }),
      late: [
        ...decision.refused.map(({ task, reason }) => ({ id: task, reason })),
        ...decision.bestEffort.map((id) => ({ id, reason: '' })),
      ].map(({ id, reason }) => [ofTask(byId, id), reason]),
      order: decision.order,
      rejected: decision.rejected,
      actions: decision.actions ?? [],
      ...(decision.wakeAt !== undefined && { wakeAt: decision.wakeAt }),
    };
  }

  /** The view that the policy sees now. Throws an Error if another controller is the leader. */
  viewOf(waiting: readonly WaitingActivation[]): View {
    const { clock, placer } = this.parts;
    const at = clock.now();
    const nowMs = clock.monotonicMs();
    const { faults } = this.parts.performanceData;
    const tasks = waiting.map((one): Task => {
      keepApart(one, faults);
      const arrivedAt = this.arrivals.of(one, at, nowMs);
      const allowed = placer.allowedFor(one);
      const { message, need, request, sloMs } = one;
      const task = this.taskOf({ ...askedOf(message, need, request), sloMs }, arrivedAt);
      return { ...task, request, ...(allowed && { allowed }) };
    });
    return this.viewAt(at, tasks);
  }

  /**
   * The present view as JSON, with everything that the decision after `event` depends on (see `encodePass`). Throws an Error
   * if another controller is the leader.
   */
  saved(waiting: readonly WaitingActivation[], event: SchedulingEvent): JsonObject {
    return this.encode(this.viewOf(waiting), event);
  }

  private encode(view: View, event: SchedulingEvent): JsonObject {
    return encodePass(view, { ...this.inputsFor(event), state: this.policy.saved?.() });
  }

  private inputsFor(event: SchedulingEvent): PassInputs {
    const { performanceData, options } = this.parts;
    return {
      policy: this.inForce.choice,
      admission: options.admission,
      trainingLast: true,
      event,
      state: undefined,
      models: performanceData.predictors.list(),
      quotas: performanceData.table.rows(),
      trials: performanceData.setTrials.saved(),
    };
  }

  private failed(policy: string, fault: string, pass: FaultyPass | undefined): void {
    const { logger, metrics, clock } = this.parts;
    metrics.policyFault();
    this.parts.onFault?.(fault);
    const nowMs = clock.monotonicMs();
    const isLogged = pass !== undefined && nowMs - this.viewLoggedMs >= viewLogMs;
    if (isLogged) this.viewLoggedMs = nowMs;
    const view = isLogged ? encodeWithin(maxLoggedBytes, pass.view, this.inputsFor(pass.event)) : undefined;
    logger.error({ policy, fault, ...(view && { view }) }, 'a policy failed: the least loaded place is taken instead');
  }

  /**
   * The policy's actions of a tick, for which `queue` counts, after a report of a suffering workload, or about nodes.
   */
  actionsOn(kind: 'tick' | 'report' | 'procure', queue: Iterable<WaitingActivation>): readonly Action[] {
    const view = this.viewOf(kind === 'tick' ? [...queue] : []);
    if (kind === 'tick' && this.inForce.predictsDegradation) this.parts.performanceData.degradations.look(view);
    return this.policy.decide(view, { kind }).actions ?? [];
  }

  private viewAt(at: number, waiting: readonly Task[]): View {
    const { placer, instances } = this.parts;
    return viewOf(placer, {
      at,
      waiting,
      instances,
      runs: (activationId) => this.runs.get(activationId),
      functions: () => this.seenFunctions(at),
      workloads: () => this.workloads.at(at),
      procurement: () => this.parts.procurer?.state(),
    });
  }

  private seenFunctions(at: number): FunctionState[] {
    const kinds = this.inForce.givesProfiled ? kindsOf(this.parts.placer.accounts()) : [];
    return Array.from(this.parts.functions.all(), (logged) => {
      const { last, counts, runMs } = logged;
      const asked = askedOf(last.message, last.need);
      const task = { ...this.taskOf(asked, at), request: asked.request };
      const forecast = this.parts.performanceData.forecasts.of(calledFunction(logged), at);
      const served = profiledRates(task, kinds);
      return {
        ...{ task, arrivals: counts },
        ...(runMs !== undefined && { runMs }),
        ...(served !== undefined && { served }),
        ...(forecast && { forecast }),
      };
    });
  }

  /** Where the policy would have a new instance of a function, as `placesForInstance`. */
  placesForInstance(
    message: ActivationMessage,
    need: GpuNeed,
    request: PlacementRequest,
  ): readonly string[] | undefined {
    const view = this.viewOf([]);
    const task = this.taskOf(askedOf(message, need, request), view.at);
    return this.policy.placesForInstance?.(view, { ...task, request });
  }

  /** Puts a sample on its GPU. Nothing is chosen if the GPU has no room. */
  placeSample(
    message: ActivationMessage,
    need: GpuNeed,
    { gpu: id, shareClass }: SampleRun,
  ): Pick<Sent, 'request' | 'choice'> {
    const { placer, clock } = this.parts;
    const asked = requestOf(message, need);
    const alone = aloneOf(message, this.parts.performanceData.faults);
    if (alone !== undefined) {
      return { request: asked, choice: { rejected: [{ what: id, reason: aloneText(alone), numbers: {} }] } };
    }
    const share = shareClass / 100;
    const request = { ...asked, share: { ...asked.share, shareClass, smRequest: share, smLimit: share } };
    const account = this.places.used().find((one) => one.id === id);
    if (account === undefined) return { request, choice: { rejected: [] } };
    const choice = placer.bind(request, [id], new Map());
    if (choice.placement !== undefined) {
      const at = clock.now();
      const task: Task = {
        id: message.activationId,
        function: request.action,
        version: message.action.version ?? '',
        namespace: sampler,
        batch: need.batch,
        gpus: 1,
        memoryMiB: need.memoryMiB,
        class: need.class,
        arrivedAt: at,
      };
      this.runs.began(message.activationId, {
        task,
        gpu: { id, ...kindOf(account.place) },
        alsoOn: [],
        share,
        startedAt: at,
        startMs: clock.monotonicMs(),
        isWarm: choice.reuses !== undefined,
        hasUnknownNeighbours: this.hasUntrackedWorkOn(id),
        isSample: true,
      });
    }
    return { request, choice };
  }

  /** Input for trials of policies: arrivals as tasks with their functions' learned times, and the healthy GPUs. */
  trialOf(arrivals: readonly Arrival[]): Pick<PolicyTrial, 'tasks' | 'places' | 'models'> {
    return {
      tasks: arrivals.map((one) => this.taskOf({ ...one, sloMs: one.need.sloMs }, one.at)),
      places: this.places.used().map((account) => {
        const { id, place } = account;
        const { gpuType: type, mode } = kindOf(place);
        return { id, node: place.node.invoker, type, mode, memoryMiB: tasksMiB(account) };
      }),
      models: this.parts.performanceData.predictors.list().map(encodeModel),
    };
  }

  /** The GPUs on which samples could be measured; empty if the policy uses no measurements. */
  sampledPlaces(): SampledPlace[] {
    return this.inForce.takesSamples ? this.places.sampled() : [];
  }

  /** Ends a run; a successful one is learned from, with the size of its input that its function has reported, if it has. */
  ended(activationId: string, succeeded: boolean, reported?: number): void {
    const ended = this.runs.end(activationId, this.parts.clock.monotonicMs());
    if (ended === undefined || ended.isSample === true) return;
    const run = reported === undefined ? ended : withReportedSize(ended, reported);
    const { task, ranMs } = run;
    // Before it is learned from: its time alone is that of earlier runs.
    this.parts.performanceData.decisions.ran(activationId, runFacts(run, this.parts.performanceData.profiles));
    this.parts.functions.ran({ action: task.function, namespace: task.namespace }, ranMs);
    if (succeeded) this.inForce.feedback.ran(run);
    this.parts.performanceData.setTrials.ran({ ...run, isDisturbed: !succeeded || isDisturbed(run) });
    const isAlone = run.beside.every((other) => other.task.function === task.function);
    if (succeeded && isAlone) this.parts.performanceData.faults.ranAlone(task.function, task.version);
    if (succeeded && this.inForce.predictsDegradation) this.learnBeside(run);
    if (succeeded && this.inForce.readsSlices && isUndisturbed(run)) this.parts.performanceData.slices.ran(run);
    this.policy.observe?.(run);
  }

  /** Learns from a run beside workloads and functions that were there all the time. */
  private learnBeside(run: LoggedRun & ObservedRun): void {
    const { task, gpu, alsoOn, isWarm, hasUnknownNeighbours, hasMovedShares, workloads = [] } = run;
    const { performanceData, clock } = this.parts;
    const ids = this.workloads.on(gpu.id, clock.now()).map(({ id }) => id);
    const isSteady = workloads.length === ids.length && workloads.every(({ id }) => ids.includes(id));
    const neighbours = steadyNeighbours(run);
    const soloMs = performanceData.profiles.aloneMs(task, gpu);
    if (!isWarm || hasUnknownNeighbours || hasMovedShares || !isSteady || neighbours === undefined) return;
    if (soloMs === undefined || alsoOn.length > 0 || workloads.length + neighbours.length === 0) return;
    performanceData.degradations.ran(run, workloads, neighbours, soloMs);
  }

  /** Drops an activation that was returned without a run. */
  returned(activationId: string): void {
    this.runs.dropped(activationId);
    this.policy.returned?.(activationId);
  }

  /** Drops a run whose end is overdue and was not reported. */
  lost(activationId: string): void {
    this.runs.lost(activationId);
  }

  /** Drops all runs, as another controller is now the leader and learns of their ends. */
  handedOver(): void {
    this.runs.clear();
  }

  /** Notes an agent's row. */
  seen(node: NodeStatus): void {
    this.parts.performanceData.seen(node);
  }

  /** The sets of functions that were tried together. */
  triedSets(): TriedSets {
    return new TriedSets(this.parts.performanceData.setTrials.all());
  }

  private taskOf(asked: Asked, arrivedAt: number): Task {
    return taskOf(asked, arrivedAt, this.parts.performanceData.profiles, this.inForce.givesProfiled);
  }

  /** Notes a start that is about to be sent. False: its places could not take it, so that it is not. */
  begins({ waiting, task, start, choice }: PolicyStart): boolean {
    const { placer, clock } = this.parts;
    const { activationId } = waiting.message;
    const { gpu: id, alsoOn = [] } = start;
    const [account] = placer.accountsOf([id]);
    if (choice.placement === undefined || account === undefined) {
      this.policy.returned?.(activationId);
      // Not again with the same row: policies may take a leaving place for one that takes new instances.
      const invoker = account?.health?.state === 'leaving' ? account.place.node.invoker : undefined;
      if (invoker !== undefined) waiting.refusedAtMs = new Map([[invoker, clock.monotonicMs()]]);
      return false;
    }
    const { place } = account;
    const alone = aloneTimesOf(task, kindOf(place), this.parts.performanceData.profiles);
    if (alone !== undefined) choice.placement.alone = alone;
    if (choice.placement.joins === true) return true;
    const { share } = choice.placement;
    const workloads = this.workloads.on(id, clock.now());
    this.runs.began(activationId, {
      task: choice.reuses === undefined ? task : { ...task, startMs: 0 },
      gpu: { id, ...kindOf(place) },
      alsoOn,
      share: share.smLimit,
      startedAt: clock.now(),
      startMs: clock.monotonicMs(),
      isWarm: choice.reuses !== undefined,
      ...(share.smLimit * 100 >= share.shareClass && { shareClass: share.shareClass }),
      ...(workloads.length > 0 && { workloads }),
      hasUnknownNeighbours: [id, ...alsoOn].some((one) => this.hasUntrackedWorkOn(one, task)),
    });
    const { rule } = this.inForce;
    const together = rule === undefined ? [] : this.runs.on(id);
    if (rule?.isUnmeasured(kindOf(place), together, clock.now()) === true) {
      this.parts.performanceData.setTrials.began(kindOf(place), together, clock.now());
    }
    return true;
  }

  /** Whether a place has a process of others that is no known workload, or a run (other than `own`) that this controller did not start. */
  private hasUntrackedWorkOn(id: string, own?: Task): boolean {
    const { placer, clock } = this.parts;
    const at = clock.now();
    // The place counts a run that is about to begin, by its instance, before the log knows it.
    const known: KnownRuns = (run) => (run === own?.id ? { task: own, startedAt: at } : this.runs.get(run));
    return placer.accountsOf([id]).some((account) => {
      if (!takesWork(account.health)) return false;
      const isOthers = hasForeignProcesses(account.place.status) && this.workloads.on(id, at).length === 0;
      return isOthers || this.places.runningOn(account, known).some(({ task }) => known(task.id) === undefined);
    });
  }
}

/** The value of a queued task. Throws Error for a task that is not queued; `guarded` rejects decisions that name one. */
export function ofTask<Value>(values: ReadonlyMap<string, Value>, task: string): Value {
  const value = values.get(task);
  if (value === undefined) throw new Error(`the decision names task '${task}', which is not queued`);
  return value;
}
