import { turnsInLedger } from '../stages/order/ledger-turns.js';
import type { Planner } from '../stages/order/plan.js';
import { PredictionCache } from '../stages/order/set-predictions.js';
import { bySlowdowns } from '../predict/degradation.js';
import { SetTrials } from '../share/set-trials.js';
import { firstShareOf } from '../stages/place/first-share.js';
import type { FirstShare, IsKnown } from '../stages/place/first-share.js';
import { SliceSlowdowns } from '../algorithms/protean/slowdowns.js';
import type { SliceSlowdownsState } from '../algorithms/protean/slowdowns.js';
import { boundStarts, joinBatches, launches } from '../stages/place/bind.js';
import type { Launching } from '../stages/place/bind.js';
import { onInstances } from '../stages/scale/lazy-starts.js';
import type { Geometry } from '../stages/geometry/geometry.js';
import type { Placing } from '../stages/place/place.js';
import type { Scaling } from '../stages/scale/scale.js';
import type { Action, Start, TaskRejection } from '../view/decision.js';
import { allWait } from '../view/decision.js';
import { placeIdsOf } from '../ledger/occupancy.js';
import type { Task, View } from '../view/view.js';
import type { Policy } from './policy.js';
import { protectingWorkloads } from './protect-workloads.js';
import type { PolicyRecord } from '../stages/policy-record.js';
import { policies } from './registry.js';
import { stages, stagesCan } from './stages.js';
import type { Settings } from '../stages/policy-record.js';
import type { PlaceStage, StageEntry, StageName, StageNeeds } from './stages.js';

/** Whether a task that cannot meet its SLO any more runs as best effort or is refused. */
export type LateTaskHandling = 'best-effort' | 'refuse';

/** Dependencies of policies. */
export interface PolicyNeeds extends Omit<StageNeeds, 'predictions' | 'degradationsOf' | 'sliceSlowdowns' | 'rule'> {
  /** Absent: degradations are what the predictors of slowdowns say. */
  degradationsOf?: StageNeeds['degradationsOf'];
  /** Learned elsewhere; absent: the policy learns them from the runs that it observes. */
  sliceSlowdowns?: StageNeeds['sliceSlowdowns'];
  /** Learned elsewhere; absent: the policy learns them from the runs that it observes. */
  setTrials?: SetTrials;
  admission: LateTaskHandling;
}

/** A policy of the registry with other stages or settings. */
export interface PolicyChanges extends Partial<Record<StageName, string>> {
  base: string;
  settings?: Settings;
}

/** The name of a policy, or changes to one. */
export type PolicyChoice = string | PolicyChanges;

const stageNames = Object.keys(stages) as StageName[];
/** What a plan stands for. */
const planned = ['order', 'share', 'place'] as const;

/** The stages of a policy by their names, and its settings. */
export interface Composition {
  name: string;
  stages: Partial<Record<StageName, string>>;
  settings: Settings;
  needsNoProfiles: boolean;
  takesAsTheyCome: boolean;
  asksPredicted: boolean;
}

const list = (names: readonly string[]): string => names.join(', ');

/** The stages of a choice. Throws RangeError where it names what there is not, or stages that do not fit each other. */
export function compositionOf(choice: PolicyChoice): Composition {
  const { base, settings: given = {}, ...changes } = typeof choice === 'string' ? { base: choice } : choice;
  if (typeof given !== 'object' || given === null) throw new RangeError("'settings' must be an object");
  const record = Object.hasOwn(policies, base) ? policies[base] : undefined;
  if (record === undefined) {
    throw new RangeError(`there is no policy '${base}'; there are ${list(Object.keys(policies))}`);
  }
  const { settings: own = {}, needsNoProfiles = false, takesAsTheyCome = false, asksPredicted = false } = record;
  const known = stagesOf(record);
  const named: Record<string, string> = {};
  for (const [stage, name] of Object.entries(changes)) {
    if (name !== undefined) named[stage] = currentName(stage, name);
  }
  for (const [stage, name] of Object.entries(named)) checkStage(stage, name);
  const beside = planned.filter((stage) => stage in named);
  if ('plan' in named && beside.length > 0) {
    throw new RangeError(`a plan stands for order, share and place: ${list(beside)} cannot be set beside it`);
  }
  if ('plan' in known && beside.length > 0 && beside.length < planned.length) {
    const missing = planned.filter((stage) => !(stage in named));
    throw new RangeError(
      `'${base}' plans by '${known.plan}', which stands for order, share and place: with ${list(beside)} set, ${list(missing)} must be set too`,
    );
  }
  const all: Composition['stages'] = { ...known, ...named };
  if ('plan' in named) for (const stage of planned) delete all[stage];
  else if (beside.length > 0) delete all.plan;
  checkSettings(all, given);
  // Stages that were replaced take their settings along.
  const left = Object.entries(own).filter(([setting]) => knownSettings(all).includes(setting));
  const settings = { ...Object.fromEntries(left), ...given };
  const changed = Object.entries({ ...named, ...given }).map(([what, to]) => ` ${what}=${to}`);
  return {
    name: `${base}${changed.join('')}`,
    stages: all,
    settings,
    needsNoProfiles: needsNoProfiles && changed.length === 0,
    takesAsTheyCome,
    asksPredicted,
  };
}

/** The name of an implementation; `everybody`, the former name of admit stage `always`, is accepted as an alias. */
function currentName(stage: string, name: string): string {
  return stage === 'admit' && name === 'everybody' ? 'always' : name;
}

function stagesOf(record: PolicyRecord): Composition['stages'] {
  const { admit, preempt = 'none', scale = 'none', geometry = 'none', procure = 'none' } = record;
  const further = { preempt, scale, geometry, procure };
  if ('plan' in record) return { admit, plan: record.plan, ...further };
  const { order, share, place } = record;
  return { admit, order, share, place, ...further };
}

function checkStage(stage: string, name: unknown): void {
  if (!Object.hasOwn(stages, stage)) {
    throw new RangeError(`there is no stage '${stage}'; there are ${list(stageNames)}`);
  }
  const known = stages[stage as StageName];
  if (typeof name === 'string' && Object.hasOwn(known, name)) return;
  throw new RangeError(`there is no ${stage} stage '${String(name)}'; there are ${list(Object.keys(known))}`);
}

function knownSettings(chosen: Composition['stages']): string[] {
  return Object.entries(chosen).flatMap(([stage, name]) => Object.keys(settingsOf(stage, name)));
}

function checkSettings(chosen: Composition['stages'], settings: Settings): void {
  const known = knownSettings(chosen);
  for (const [name, value] of Object.entries(settings)) {
    if (!known.includes(name)) {
      const there = known.length === 0 ? 'they have none' : `there are ${list(known)}`;
      throw new RangeError(`the stages of the policy have no setting '${name}'; ${there}`);
    }
    if (!Number.isFinite(value) || value < 0) throw new RangeError(`setting '${name}' is no number from 0`);
  }
}

type Entries<Stage> = Readonly<Record<string, StageEntry<Stage>>>;

/** The settings of an implementation, with their defaults; none if there is no such implementation. */
function settingsOf(stage: string, name: string): Settings {
  return (stages[stage as StageName] as Entries<unknown>)[name]?.settings ?? {};
}

/** All settings of a composition's stages, by stage, as they are in force. */
export function settingsInForce({ stages: chosen, settings }: Composition): Partial<Record<StageName, Settings>> {
  const inForce = Object.entries(chosen).map(([stage, name]) => {
    const known = Object.entries(settingsOf(stage, name));
    return [stage, Object.fromEntries(known.map(([one, value]) => [one, settings[one] ?? value]))];
  });
  return Object.fromEntries(inForce) as Partial<Record<StageName, Settings>>;
}

/** Slowdowns that pairs are taken to have under policies that ask the predicted filters and go by no setting. */
const assumedSlowdowns = { unknown: 1.35, full: 0 };

/** The rule of a policy for functions of which nothing is measured; undefined: it has none. */
export function ruleOf(composition: Composition, trials: SetTrials, isKnown?: IsKnown): FirstShare | undefined {
  const { plan } = settingsInForce(composition);
  const { firstSlowdown: unknown = 0, fullSlowdown: full = 0 } = plan ?? {};
  const isSet = plan?.['firstSlowdown'] !== undefined;
  return firstShareOf(composition.asksPredicted && !isSet ? assumedSlowdowns : { unknown, full }, trials, isKnown);
}

/** A view without the tasks that start; what it makes when it is read is still made then. */
function without(view: View, starts: readonly Start[]): View {
  const started = new Set(starts.map(({ task }) => task));
  const waiting = view.waiting.filter(({ id }) => !started.has(id));
  return Object.create(view, { waiting: { value: waiting, enumerable: true } }) as View;
}

/** Tasks with an SLO that go on to wait, the next one first. */
function strictOf(tasks: readonly Task[], order: readonly string[]): Task[] {
  const byId = new Map(tasks.map((task) => [task.id, task]));
  return order.map((id) => byId.get(id)).filter((task) => task?.sloMs !== undefined) as Task[];
}

const none: readonly TaskRejection[] = [];

function actionsOf(view: View, { launch, retire }: Scaling, launching: Launching): Action[] {
  return [...launches(view, launch, launching), ...retire.map((one) => ({ kind: 'retire' as const, ...one }))];
}

/** As `placesForInstance` of a policy. */
function placesForInstance(
  view: View,
  task: Task,
  { placing, instancePlacesIn }: Launching,
): readonly string[] | undefined {
  const { ledger: open } = view;
  if (placing !== undefined) {
    const request = placing.requestOf(task, open.ledger, view.at);
    if ('reason' in request) return [];
    const limits = { kept: new Set<string>(), isOpen: open.isOpen, isNew: true };
    const { placement } = placing.begin(view, [])(request, limits, { epoch: open.epoch, at: view.at }, task);
    return placement === undefined ? [] : placeIdsOf(placement);
  }
  if (instancePlacesIn === undefined) return undefined;
  const all = new Set(open.ledger.accounts().map(({ id }) => id));
  return instancePlacesIn(view)(task, all) ?? [];
}

/** The state of a policy whose stages keep more than the planner does. */
interface SavedStages {
  planner?: unknown;
  slices?: SliceSlowdownsState;
  geometry?: unknown;
}

/** A policy. Throws RangeError as `compositionOf` does. */
export function makePolicy(choice: PolicyChoice, { admission, ...given }: PolicyNeeds): Policy {
  const composition = compositionOf(choice);
  const { name, stages: chosen, settings } = composition;
  const setTrials = given.setTrials ?? new SetTrials();
  const sliceSlowdowns = given.sliceSlowdowns ?? new SliceSlowdowns();
  const readsSlices = stagesCan('learnsSlices', chosen);
  const isKnown: IsKnown = ({ function: name }, gpu) =>
    readsSlices && sliceSlowdowns.bandwidthsOn(gpu)?.knows(name) === true;
  const rule = ruleOf(composition, setTrials, isKnown);
  const learnsSlices = readsSlices && given.sliceSlowdowns === undefined;
  const needs: StageNeeds = {
    degradationsOf: (gpu) => bySlowdowns(given.predictorOf(gpu)),
    ...given,
    predictions: new PredictionCache((gpu) => given.predictorOf(gpu)),
    sliceSlowdowns,
    rule,
  };
  const make = <Stage>(entries: Entries<Stage>, of: StageName): Stage => {
    const entry = entries[chosen[of] ?? ''];
    if (entry === undefined) throw new RangeError(`policy '${name}' has no stage '${of}'`);
    const own = Object.entries(settings).filter(([setting]) => setting in entry.settings);
    return entry.make(needs, Object.fromEntries(own));
  };
  const composed = (): { planner: Planner; placing?: Placing } => {
    const [order, share] = [make(stages.order, 'order'), make(stages.share, 'share')];
    const placing = make<PlaceStage>(stages.place, 'place')(share);
    // eslint-disable-next-line @typescript-eslint/no-non-null-assertion -- stages that no plan stands for are all named
    return { planner: turnsInLedger({ order, placing, placeName: chosen.place!, rule }), placing };
  };
  const admit = make(stages.admit, 'admit');
  const { planner, placing } = chosen.plan === undefined ? composed() : { planner: make<Planner>(stages.plan, 'plan') };
  const launching: Launching = { placing, instancePlacesIn: planner.instancePlacesIn };
  const preempt = make(stages.preempt, 'preempt');
  const scale = make(stages.scale, 'scale');
  const geometry = make<Geometry>(stages.geometry, 'geometry');
  const procure = make(stages.procure, 'procure');
  const keepsMore = readsSlices || geometry.saved !== undefined;
  const isAsked = (stage: StageName): boolean => !stagesCan('idles', { [stage]: chosen[stage] });
  const preempts = isAsked('preempt');
  const refuses = admission === 'refuse';
  // A lazy scale stage chooses among the instances itself.
  const joinsBefore = planner.gathers !== true && scale.isLazy !== true;
  const made: Policy = {
    name,
    scales: (['scale', 'preempt', 'geometry'] as const).some(isAsked),
    procures: isAsked('procure'),
    ...(planner.moves && { moves: true }),
    placesForInstance: (view, task) => placesForInstance(view, task, launching),
    decide(view, event) {
      if (event.kind === 'tick') {
        const actions = [
          ...actionsOf(view, scale(view), launching),
          ...preempt(view, [], event),
          ...geometry.cuts(view),
        ];
        return { ...allWait(view), actions };
      }
      if (event.kind === 'procure') return { ...allWait(view), actions: procure(view) };
      if (event.kind === 'report') return { ...allWait(view), actions: preempt(view, [], event) };
      const joined = joinsBefore ? joinBatches(view) : [];
      const left = joined.length === 0 ? view : without(view, joined);
      const { tasks, hopeless } = admit(left);
      const goOn = refuses && hopeless.size > 0 ? tasks.filter(({ id }) => !hopeless.has(id)) : tasks;
      const { tasks: free, held } = scale.isLazy === true ? onInstances(left, goOn) : { tasks: goOn, held: none };
      const planned = planner.plan({ view: left, tasks: free, event });
      const gives = preempts ? preempt(left, strictOf(free, planned.order), event) : [];
      return {
        ...planned,
        ...(held.length > 0 && {
          order: [...planned.order, ...held.map(({ task }) => task)],
          rejected: [...planned.rejected, ...held],
        }),
        starts: [...joined, ...boundStarts(left, planned.starts, planned.rejected)],
        ...(gives.length > 0 && { actions: [...(planned.actions ?? []), ...gives] }),
        refused: refuses ? Array.from(hopeless, ([task, reason]) => ({ task, reason })) : [],
        bestEffort: refuses ? [] : [...hopeless.keys()],
      };
    },
    observe(run) {
      if (learnsSlices) sliceSlowdowns.ran(run);
      if (given.setTrials === undefined) setTrials.ran(run);
      planner.observe?.(run);
    },
    returned: (task) => planner.returned?.(task),
    geometry: () => geometry.report?.(),
    saved() {
      const own = planner.saved?.();
      if (!keepsMore) return own;
      return {
        planner: own,
        ...(readsSlices && { slices: sliceSlowdowns.state() }),
        ...(geometry.saved !== undefined && { geometry: geometry.saved() }),
      };
    },
    restore(saved) {
      const { planner: own, slices, geometry: cuts } = keepsMore ? (saved as SavedStages) : { planner: saved };
      if (own !== undefined) planner.restore?.(own);
      if (slices !== undefined) sliceSlowdowns.restore(slices);
      if (cuts !== undefined) geometry.restore?.(cuts);
    },
  };
  // Stage `preempt` does so itself, and asks for predictions.
  return composition.asksPredicted && chosen.preempt !== 'workload-guard' ? protectingWorkloads(made) : made;
}
