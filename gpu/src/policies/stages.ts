import type { GpuKind } from '@gpuwhisk/common/gpu';
import type { Random } from '@gpuwhisk/common/system/random';
import type { Admit } from '../stages/admit/admit.js';
import { beforeSlo, always } from '../stages/admit/admit.js';
import { byPrediction } from '../stages/admit/by-prediction.js';
import { latestStart } from '../stages/admit/latest-start.js';
import { deadlineFirst, fifo, shortestFirst, strictFirst } from '../stages/order/order.js';
import { degradationDefaults, degradationPlan } from '../algorithms/smore/degradation-plan.js';
import { noGeometry } from '../stages/geometry/geometry.js';
import type { Geometry } from '../stages/geometry/geometry.js';
import { proteanGeometry, proteanGeometryDefaults } from '../algorithms/protean/geometry.js';
import { learnedSlices } from '../algorithms/protean/slice-model.js';
import { dueFirst } from '../stages/order/earliest-deadline.js';
import { mostUseForInterference } from '../algorithms/smore/interference-priority.js';
import { leastLoadedPlan } from '../algorithms/least-loaded/plan.js';
import { placingOf } from '../stages/order/ledger-turns.js';
import type { Order } from '../stages/order/order.js';
import { proteanOrder, proteanOrderDefaults } from '../algorithms/protean/order.js';
import type { Planner } from '../stages/order/plan.js';
import type { PredictionCache } from '../stages/order/set-predictions.js';
import { subQueueDefaults, subQueuePlan } from '../algorithms/faashare/sub-queue-plan.js';
import { degradationScoreDefaults } from '../stages/place/by-degradation.js';
import { byFragments } from '../algorithms/dilu/place.js';
import { leastDegradation } from '../algorithms/smore/least-degradation.js';
import { oversubscriptionDefaults } from '../algorithms/dilu/oversubscription.js';
import { byTags, proteanPlaceDefaults } from '../algorithms/protean/place.js';
import { bestFit, fewestTasks, firstFit } from '../stages/place/place.js';
import type { LedgerPlace, Placing, Scores } from '../stages/place/place.js';
import { placedByScore } from '../stages/order/scored-places.js';
import type { ModelOf } from '../stages/place/set-effects.js';
import type { SliceSlowdowns } from '../algorithms/protean/slowdowns.js';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import { byStop, byStopDefaults } from '../stages/preempt/by-stop.js';
import { noPreemption as noPreempt } from '../stages/preempt/preempt.js';
import type { Preempt } from '../stages/preempt/preempt.js';
import { workloadGuard, workloadGuardDefaults } from '../stages/preempt/workload-guard.js';
import { noProcurement } from '../stages/procure/procure.js';
import type { Procure } from '../stages/procure/procure.js';
import { proteanProcurement, proteanProcurementDefaults } from '../algorithms/protean/procure.js';
import { diluForecastDefaults, diluScale, diluScaleDefaults, diluWithForecast } from '../algorithms/dilu/scale.js';
import {
  hhpScale,
  histogramScaleDefaults,
  lsthScale,
  smoreScale,
  smoreScaleDefaults,
} from '../stages/scale/forecast.js';
import { keepAlive, keepAliveDefaults, noScaling as noScale } from '../stages/scale/scale.js';
import { proteanScale, proteanScaleDefaults } from '../algorithms/protean/scale.js';
import { reactive, reactiveDefaults } from '../stages/scale/reactive.js';
import type { Scale } from '../stages/scale/scale.js';
import { byProfile } from '../algorithms/dilu/share.js';
import { filling, unlimited, whole } from '../stages/share/share.js';
import type { Quotas } from '../share/quotas.js';
import type { FirstShare } from '../stages/place/first-share.js';
import type { ShareOut } from '../stages/share/share.js';
import type { Settings } from '../stages/policy-record.js';

/** Dependencies of stages. */
export interface StageNeeds {
  /** The model of a type of GPU in one mode. Asked for at every decision: a newer model takes the place of an older one. */
  predictorOf(gpu: GpuKind): SlowdownPredictor;
  /** What that model says of degradation beside workloads; asked for once a second for what is there. */
  degradationsOf: ModelOf;
  /** Predictions of those models for sets. */
  predictions: PredictionCache;
  /** What PROTEAN's stages go by. */
  sliceSlowdowns: SliceSlowdowns;
  /** Shares of those that run together; absent: what each fills. */
  quotas?: Quotas;
  /** The rule for functions of which nothing is measured; undefined: the policy has none. */
  rule?: FirstShare | undefined;
  random: Random;
}

/** What an implementation asks of the platform or does, besides what its interface says; absent: not. */
export interface Capabilities {
  /** It never decides anything, so that it need not be asked. */
  idles?: true;
  /** It puts parts of a function on several devices (annotation `gpu`, field `spans`). */
  spans?: true;
  /** It gives functions the request and limit of their profiles, so that these are profiled and passed to it. */
  usesProfiledShares?: true;
  /** It goes by slowdowns on slices, which are learned while it is in force. */
  learnsSlices?: true;
  /** It asks for degradations, which are learned while it is in force. */
  asksForDegradations?: true;
}

/** The names of all capabilities. */
export const capabilities = Object.keys({
  ...{ idles: true, spans: true, usesProfiledShares: true, learnsSlices: true, asksForDegradations: true },
} satisfies Required<Capabilities>);

/** An implementation of a stage. */
export interface StageEntry<Stage> extends Capabilities {
  /** Its settings with their defaults. */
  settings: Settings;
  make(needs: StageNeeds, settings: Settings): Stage;
}

/** How instances are placed at the shares of a stage `share`. */
export type PlaceStage = (share: ShareOut) => Placing;

const byScore =
  (name: string, scores: Scores): PlaceStage =>
  (share) =>
    placedByScore(share, scores, name);

const inLedger =
  (place: LedgerPlace): PlaceStage =>
  (share) =>
    placingOf(share, place);

function made<Stage>(make: (needs: StageNeeds) => Stage, can: Capabilities = {}): StageEntry<Stage> {
  return { ...can, settings: {}, make };
}

function settable<Stage, Given extends Settings>(
  settings: Given,
  make: (needs: StageNeeds, settings: Given) => Stage,
  can: Capabilities = {},
): StageEntry<Stage> {
  return { ...can, settings, make: (needs, given) => make(needs, { ...settings, ...given }) };
}

const slices: Capabilities = { learnsSlices: true };
const degradations: Capabilities = { asksForDegradations: true };

/** Every implementation of every stage, by its name. A plan stands for order, share and place. */
export const stages = {
  admit: {
    always: made(() => always),
    'before-slo': made(() => beforeSlo),
    'by-prediction': made(({ predictions }) => byPrediction(predictions)),
    'latest-start': made(() => latestStart),
  } satisfies Record<string, StageEntry<Admit>>,
  order: {
    fifo: made(() => fifo),
    'due-first': made(() => dueFirst),
    'deadline-first': made(() => deadlineFirst),
    'strict-first': made(() => strictFirst),
    'shortest-first': made(() => shortestFirst),
    smore: made(() => mostUseForInterference()),
    protean: settable(proteanOrderDefaults, ({ sliceSlowdowns }, set) => proteanOrder(sliceSlowdowns, set), slices),
  } satisfies Record<string, StageEntry<Order>>,
  share: {
    whole: made(() => whole),
    filling: made(() => filling),
    // Of two, three and four the number that ends 120 jobs of FaaShare's table I soonest in replay.
    unlimited: settable({ slots: 2 }, (_, { slots }) => unlimited(slots)),
    dilu: settable(oversubscriptionDefaults, ({ rule }, bounds) => byProfile(bounds, rule !== undefined), {
      usesProfiledShares: true,
    }),
  } satisfies Record<string, StageEntry<ShareOut>>,
  place: {
    'first-fit': made(() => byScore('first-fit', firstFit)),
    'best-fit': made(() => byScore('best-fit', bestFit)),
    'fewest-tasks': made(() => byScore('fewest-tasks', fewestTasks)),
    smore: settable(
      degradationScoreDefaults,
      ({ degradationsOf }, set) => byScore('smore', leastDegradation(degradationsOf, set)),
      degradations,
    ),
    dilu: settable(oversubscriptionDefaults, (_, bounds) => inLedger(byFragments(bounds)), { spans: true }),
    protean: settable(proteanPlaceDefaults, ({ sliceSlowdowns }, set) => inLedger(byTags(sliceSlowdowns, set)), slices),
  } satisfies Record<string, StageEntry<PlaceStage>>,
  plan: {
    'least-loaded': made(({ rule }) => leastLoadedPlan(rule)),
    'sub-queues': settable(subQueueDefaults, ({ predictions, quotas, rule }, set) =>
      subQueuePlan(predictions, quotas, rule, set),
    ),
    'by-degradation': settable(
      degradationDefaults,
      ({ degradationsOf, rule }, set) => degradationPlan(degradationsOf, set, rule),
      degradations,
    ),
  } satisfies Record<string, StageEntry<Planner>>,
  preempt: {
    none: made(() => noPreempt, { idles: true }),
    'by-stop': settable(byStopDefaults, (_, settings) => byStop(settings)),
    'workload-guard': settable(workloadGuardDefaults, (_, settings) => workloadGuard(settings)),
  } satisfies Record<string, StageEntry<Preempt>>,
  scale: {
    none: made(() => noScale, { idles: true }),
    'keep-alive': settable(keepAliveDefaults, (_, settings) => keepAlive(settings)),
    reactive: settable(reactiveDefaults, (_, settings) => reactive(settings)),
    smore: settable(smoreScaleDefaults, (_, settings) => smoreScale(settings)),
    hhp: settable(histogramScaleDefaults, (_, settings) => hhpScale(settings)),
    lsth: settable(histogramScaleDefaults, (_, settings) => lsthScale(settings)),
    dilu: settable(diluScaleDefaults, (_, settings) => diluScale(settings)),
    'dilu-smore': settable(diluForecastDefaults, (_, settings) => diluWithForecast(settings)),
    protean: settable(proteanScaleDefaults, (_, settings) => proteanScale(settings)),
  } satisfies Record<string, StageEntry<Scale>>,
  geometry: {
    none: made(() => noGeometry, { idles: true }),
    protean: settable(
      proteanGeometryDefaults,
      ({ sliceSlowdowns }, set) => proteanGeometry(set, learnedSlices(sliceSlowdowns)),
      slices,
    ),
  } satisfies Record<string, StageEntry<Geometry>>,
  procure: {
    none: made(() => noProcurement, { idles: true }),
    protean: settable(proteanProcurementDefaults, (_, settings) => proteanProcurement(settings)),
  } satisfies Record<string, StageEntry<Procure>>,
};

/** What each stage is an implementation of. */
export interface Stages {
  admit: Admit;
  order: Order;
  share: ShareOut;
  place: PlaceStage;
  plan: Planner;
  preempt: Preempt;
  scale: Scale;
  geometry: Geometry;
  procure: Procure;
}

/** The stage `place` of a policy module: scores, or a search of its own in the ledger. */
export function placeStageOf(name: string, made: Scores | LedgerPlace): PlaceStage {
  if (typeof made === 'function') return byScore(name, made);
  if (typeof made.begin !== 'function') throw new RangeError(`place stage '${name}' makes no scores and no search`);
  return inLedger(made);
}

/** Adds an implementation from a policy module; its name must be free. The result removes it. */
export function addStage(stage: StageName, name: string, entry: StageEntry<unknown>): () => void {
  const entries: Record<string, StageEntry<unknown>> = stages[stage];
  entries[name] = entry;
  return () => delete entries[name];
}

/** The stages that a policy names an implementation of. */
export type StageName = keyof typeof stages;

/** Whether one of the stages, by their names, has a capability. */
export function stagesCan(what: keyof Capabilities, chosen: Partial<Record<StageName, string>>): boolean {
  return Object.entries(chosen).some(([stage, name]) => {
    const entries: Readonly<Record<string, StageEntry<unknown>>> = stages[stage as StageName];
    return entries[name]?.[what] === true;
  });
}
