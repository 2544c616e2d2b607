// Order and placement beside training jobs by predicted degradation (SMORE, thesis section 3.3).
import { keepNewest } from '@gpuwhisk/common/collections';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { hashOf } from '../../numeric/hash.js';
import { isPlaced } from '../../ledger/account.js';
import type { PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import { reservationOf, startOf } from '../../stages/place/bind.js';
import type { InstancePlaces } from '../../stages/place/bind.js';
import { degradationScoreDefaults, placeByDegradation } from '../../stages/place/by-degradation.js';
import type { DegradationSearch } from '../../stages/place/by-degradation.js';
import { placesToKeep } from '../../stages/place/least-loaded.js';
import { PlaceCosts } from '../../stages/place/place-costs.js';
import type { PlacementLimits, PlacementStamp } from '../../stages/place/candidate.js';
import type { FirstShare } from '../../stages/place/first-share.js';
import { predictedFilters } from '../../stages/place/predicted-filters.js';
import type { PredictedFilter } from '../../stages/place/predicted-filters.js';
import { RiskMarks } from './risk-marks.js';
import type { SavedMarks } from './risk-marks.js';
import { SetEffects } from '../../stages/place/set-effects.js';
import type { ModelOf, SavedFigures } from '../../stages/place/set-effects.js';
import type { FeatureRecord } from '../../predict/slowdown-predictor.js';
import type { ObservedRun, Start, TaskRejection } from '../../view/decision.js';
import { functionKey, placeIdsOf } from '../../ledger/occupancy.js';
import { deadlineAt } from '../../view/view.js';
import type { OpenLedger } from '../../ledger/used-places.js';
import type { SchedulingEvent, Task, View } from '../../view/view.js';
import { InterferencePriority, degradationOf } from './interference-priority.js';
import type { SavedInterference } from './interference-priority.js';
import type { Pass, Planned, Planner } from '../../stages/order/plan.js';
import { requestAtFill } from '../../stages/order/request-at-fill.js';

/** Settings of `degradationPlan`; the thesis names some of them, the others are ours. */
export const degradationDefaults = {
  ...degradationScoreDefaults,
  /** 1: all on a place get slower at least by what they fill beyond the GPU together; 0: by their pairs alone. */
  countsExcess: 1,
  /** 1: a place where the function's instance idles comes before others; 0: it does not. */
  warmFirst: 1,
  /** Places drawn at random in fast mode; `alwaysDraws` 1: also in the other one. */
  draws: 5,
  alwaysDraws: 0,
  /** Fast mode begins with more waiting tasks than so many times the places, and ends below `fastBelow` times. */
  fastAbove: 2,
  fastBelow: 0.5,
  /** Tasks without a place that a pass tries at most. */
  mostFailures: 64,
  /** First and longest time until a task without a place is tried again though nothing has ended, ms; 0: at every pass. */
  firstBackOffMs: 10,
  longestBackOffMs: 1000,
  /** 1: places where more degradation is measured than predicted come last; 0: they do not. */
  marksRisk: 1,
};

interface BackOff {
  tries: number;
  /** Not before that, ms. */
  until: number;
}

/** Starts whose prediction is remembered until their run ends; beyond that the oldest is forgotten. */
const maxExpected = 10_000;

interface SavedPlan {
  isFast: boolean;
  backOffs: (readonly [string, BackOff])[];
  priority: SavedInterference;
  marks: SavedMarks;
  figures: SavedFigures;
}

/**
 * Each task in the order of equation 3.8 on the place of least predicted degradation that keeps workloads within their
 * bounds and the task within its deadline (algorithm 3.1). Under load (fast mode) the first of a few drawn places that will
 * do. A task without a place backs off. Ours beyond the thesis: a task that has waited for max(30 s, 2 · SLO) goes first
 * and keeps a place, idle instances are preferred, a cold start counts against the deadline, and a place without workloads
 * is one of the choices.
 */
export function degradationPlan(
  modelOf: ModelOf,
  settings: typeof degradationDefaults,
  rule: FirstShare | undefined,
): Planner {
  const effects = new SetEffects(modelOf, settings.countsExcess > 0);
  const costs = new PlaceCosts(effects, settings);
  const priority = new InterferencePriority();
  const marks = new RiskMarks();
  /** By task that has started: what was predicted of it (D). */
  const expected = new Map<string, number>();
  let backOffs = new Map<string, BackOff>();
  let isFast = false;
  let places = 0;

  function plan({ view, tasks, event }: Pass): Planned {
    const { at } = view;
    const { ledger: open } = view;
    effects.begin(at, view.workloads);
    places = open.ledger.accounts().length;
    if (tasks.length > settings.fastAbove * places) isFast = true;
    else if (tasks.length < settings.fastBelow * places) isFast = false;
    const starts: Start[] = [];
    const rejected: TaskRejection[] = [];
    const left: Task[] = [];
    const waits = new Map<string, BackOff>();
    const tried = new Tries();
    const kept = new Set<string>();
    const filters = predictedFilters(rule, view, tasks);
    for (const { task, isOverdue: late } of priority.turns(tasks, at)) {
      const wait = backOffs.get(task.id);
      if (!(late || mayTry(task, wait, { at, event })) || tried.failures >= settings.mostFailures) {
        left.push(task);
        if (wait !== undefined) waits.set(task.id, wait);
        continue;
      }
      const request = requestAtFill(task);
      learnFrom(task, request);
      const known = tried.reasonsFor(task, request, at);
      const choice = known ?? place(task, request, { open, kept, at, predicted: filters(task, request.share.smLimit) });
      if (isPlaced(choice)) {
        open.ledger.hold(reservationOf(task.id, request, choice), Infinity);
        starts.push(startOf(task.id, choice, isFirstFit() ? 'will do, of those drawn' : 'least degradation'));
        continue;
      }
      left.push(task);
      if (known === undefined) tried.failed(task, request, at, choice);
      waits.set(task.id, backOffOf(wait, at));
      for (const one of choice.rejected) rejected.push({ ...one, task: task.id });
      if (late) for (const one of placesToKeep(open.ledger, request, { kept, isOpen: open.isOpen })) kept.add(one);
    }
    backOffs = waits;
    const wakeAt = nextTry(left, waits, at);
    return { starts, order: left.map(({ id }) => id), rejected, ...(wakeAt !== undefined && { wakeAt }) };
  }

  function place(
    task: Task,
    request: PlacementRequest,
    {
      open,
      kept,
      at,
      predicted,
    }: { open: OpenLedger; kept: ReadonlySet<string>; at: number; predicted: PredictedFilter | undefined },
  ): PlacementChoice {
    const { ledger, isOpen, epoch } = open;
    const limits: PlacementLimits = { kept, isOpen, predicted, ...(task.allowed && { allowed: task.allowed }) };
    const stamp: PlacementStamp = { epoch, at };
    const search: DegradationSearch = {
      effects,
      costs,
      settings,
      takesFirst: isFirstFit(),
      risky: riskyNow(),
      ...((isFast || settings.alwaysDraws > 0) &&
        settings.draws < places && {
          draws: settings.draws,
          random: seededRandom(hashOf(task.id) + (backOffs.get(task.id)?.tries ?? 0)),
        }),
    };
    const choice = placeByDegradation(ledger, task, request, limits, stamp, search);
    if (isPlaced(choice)) expect(task.id, choice, request, ledger);
    return choice;
  }

  function instancePlacesIn({ at, workloads, ledger: { ledger, isOpen, epoch } }: View): InstancePlaces {
    effects.begin(at, workloads);
    return (task, allowed) => {
      // The instance is ready when requests come.
      const ready = { ...task, startMs: 0 };
      const request = requestAtFill(ready);
      learnFrom(ready, request);
      const limits: PlacementLimits = { kept: new Set(), isOpen, isNew: true, allowed };
      const search = { effects, costs, settings, takesFirst: false, risky: riskyNow() };
      const { placement } = placeByDegradation(ledger, ready, request, limits, { epoch, at }, search);
      return placement && placeIdsOf(placement);
    };
  }

  function riskyNow(): ReadonlySet<string> {
    return settings.marksRisk > 0 ? marks.risky : new Set();
  }

  /** Of as few places as are drawn, all are looked at. */
  function isFirstFit(): boolean {
    return isFast && settings.draws < places;
  }

  function expect(
    task: string,
    choice: PlacementChoice,
    request: PlacementRequest,
    ledger: OpenLedger['ledger'],
  ): void {
    const id = choice.placement?.slice ?? choice.placement?.devices[0];
    const account = id === undefined ? undefined : ledger.account(id);
    if (account === undefined) return;
    const newcomer = effects.newcomer(functionKey(request), Math.round(request.share.smLimit * 1000));
    keepNewest(expected, task, effects.effectOn(account, newcomer).own, maxExpected);
  }

  function learnFrom(task: Task, request: PlacementRequest): void {
    effects.learn(functionKey(request), task.featureRecord ?? (task.features as FeatureRecord | undefined));
  }

  function backOffOf(wait: BackOff | undefined, at: number): BackOff {
    const tries = (wait?.tries ?? 0) + 1;
    const { firstBackOffMs, longestBackOffMs } = settings;
    return { tries, until: at + Math.min(longestBackOffMs, firstBackOffMs * 2 ** Math.min(tries - 1, 30)) };
  }

  function observe({ task, gpu, ranMs, beside }: ObservedRun): void {
    const predicted = expected.get(task.id);
    expected.delete(task.id);
    const measured = degradationOf(task, ranMs);
    if (measured === undefined) return;
    if (beside.length > 0 || effects.workloadsOn(gpu).length > 0) priority.observe(task.function, measured);
    if (predicted !== undefined) marks.observe(gpu.id, measured, predicted);
  }

  return {
    plan,
    instancePlacesIn,
    observe,
    returned: (task) => void expected.delete(task),
    saved: (): SavedPlan => ({
      isFast,
      backOffs: [...backOffs],
      priority: priority.saved(),
      marks: marks.saved(),
      figures: effects.saved(),
    }),
    restore(state) {
      const saved = state as SavedPlan;
      isFast = saved.isFast;
      backOffs = new Map(saved.backOffs);
      priority.restore(saved.priority);
      marks.restore(saved.marks);
      effects.restore(saved.figures);
    },
  };
}

/** An end makes room, so that all may try; an arrival makes none. */
function mayTry(
  { id }: Task,
  wait: BackOff | undefined,
  { at, event }: { at: number; event: SchedulingEvent },
): boolean {
  if (event.kind === 'arrival') return event.task === id || wait === undefined;
  return event.kind === 'completion' || wait === undefined || wait.until <= at;
}

/** Requests that found no place in a pass: one that leaves no more time finds none either. */
class Tries {
  failures = 0;
  private readonly known = new Map<string, { leftMs: number; choice: PlacementChoice }[]>();

  reasonsFor(task: Task, request: PlacementRequest, at: number): PlacementChoice | undefined {
    const leftMs = deadlineAt(task) - at;
    return this.known.get(keyOf(task, request))?.find((one) => leftMs <= one.leftMs)?.choice;
  }

  failed(task: Task, request: PlacementRequest, at: number, choice: PlacementChoice): void {
    this.failures += 1;
    const key = keyOf(task, request);
    const one = { leftMs: deadlineAt(task) - at, choice };
    this.known.set(key, [...(this.known.get(key) ?? []), one]);
  }
}

function keyOf({ allowed, soloMs, startMs }: Task, request: PlacementRequest): string {
  return JSON.stringify([request, soloMs, startMs, allowed && [...allowed]]);
}

/** When the first of the waiting tasks is to be tried again, or refused as too late, ms; undefined: at no time of its own. */
function nextTry(left: readonly Task[], waits: ReadonlyMap<string, BackOff>, at: number): number | undefined {
  let next = Infinity;
  for (const task of left) {
    const latest = deadlineAt(task) - (task.soloMs ?? 0);
    next = Math.min(next, waits.get(task.id)?.until ?? at, latest > at ? latest : Infinity);
  }
  return next === Infinity ? undefined : next;
}
