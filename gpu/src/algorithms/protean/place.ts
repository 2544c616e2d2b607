// The stage `place` of PROTEAN (paper, section 4.3, algorithm 1).
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders are those of the ledger's accounts, and kinds those of its places */
import type { SliceSlowdowns } from './slowdowns.js';
import { neededMiB } from '../../ledger/account.js';
import type { PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import type { Occupant } from '../../ledger/occupancy.js';
import type { Task } from '../../view/view.js';
import {
  alternativesOf,
  candidateAt,
  choiceOf,
  instanceFor,
  placementOf,
  rejectionsOf,
} from '../../stages/place/candidate.js';
import type { Alternative, Candidate, PlacementLimits, PlacementStamp } from '../../stages/place/candidate.js';
import type { Refusal } from '../../stages/place/fact-filters.js';
import { placeLeastLoaded } from '../../stages/place/least-loaded.js';
import type { LedgerPlace, Waiting } from '../../stages/place/place.js';
import { Slices, StrictFunctions } from './slices.js';
import type { TaskOnKinds } from './slices.js';

/** Settings of the stage. Both defaults are ours. */
export const proteanPlaceDefaults = {
  /** 1: strict work counts the best effort that waits, and avoids the places that it will fill, as in the paper; 0: it does not. */
  countWaiting: 0,
  /**
   * Best effort starts beside strict runs only while each of these is predicted to take at most this part of its SLO; 0: wherever it fits,
   * as in the paper.
   */
  strictPart: 0.8,
};

/**
 * Strict work (with an SLO) goes where its predicted slowdown is least, best effort to the first of the smallest places (paper,
 * algorithm 1). Work of several GPUs goes where the least is given away.
 */
export function byTags(slowdowns: SliceSlowdowns, settings: typeof proteanPlaceDefaults): LedgerPlace {
  const known = new WeakMap<Ledger, Slices>();
  const strict = new StrictFunctions();
  const slicesOf = (ledger: Ledger): Slices => {
    const found = known.get(ledger);
    if (found !== undefined) return found;
    const made = new Slices(ledger, slowdowns, strict, settings.strictPart);
    known.set(ledger, made);
    return made;
  };
  return {
    begin({ ledger: { ledger } }, turns) {
      const slices = slicesOf(ledger);
      slices.refresh();
      const tags = tagsOf(slices, slowdowns, turns, settings.countWaiting > 0);
      return (request, limits, stamp, task) => {
        if (request.gpus > 1) return placeLeastLoaded(ledger, request, limits, stamp);
        slices.refresh();
        strict.note(task);
        return new Search(ledger, slices, { task, request, limits }, tags).choose(stamp);
      };
    },
    saved: () => strict.saved(),
    restore: (saved) => strict.restore(saved as ReturnType<StrictFunctions['saved']>),
  };
}

/** The state of a pass. */
interface Tags {
  /** Part of the memory of each place, by its order, that waiting best effort will take, 0–1; undefined: none waits, or it is not counted. */
  tags: Float64Array | undefined;
  /** What the best effort that is expected on each place requires of its bandwidth. */
  expected: Float64Array | undefined;
  /** Order of the last place with a tag below 1, which best effort leaves to strict work that waits; -1: there is none. */
  reserved: number;
  /** Whether a place has tag 1. */
  hasFull: boolean;
  /** Strict batches that have no place yet. */
  strictLeft: number;
}

/**
 * Tag values (paper, algorithm 1, lines 1 to 8): the memory of waiting best effort fills the places in ascending order. η of a
 * place counts tag · ⌊memory / memory of a best-effort batch⌋ such batches, each with their mean requirement.
 */
function tagsOf(slices: Slices, slowdowns: SliceSlowdowns, turns: readonly Waiting[], areCounted: boolean): Tags {
  const { ascending, accounts, sums, kinds } = slices;
  // Work of unknown need takes a whole place.
  const smallest = accounts[ascending[0] ?? -1] ?? { capacityMiB: 0 };
  let [strictLeft, leftMiB, batches] = [0, 0, 0];
  /** Best-effort batches by function. Batches of one function often follow each other, which spares look-ups of long queues. */
  const counts = new Map<string, number>();
  let [name, count] = ['', 0];
  for (const { task, waitsUntil } of turns) {
    if (task.sloMs !== undefined) {
      // Strict batches that are being filled do not ask for a place yet.
      if (waitsUntil === undefined) strictLeft += 1;
      continue;
    }
    batches += 1;
    leftMiB += neededMiB(task, smallest);
    if (!areCounted) continue;
    if (task.function !== name) {
      if (count > 0) counts.set(name, (counts.get(name) ?? 0) + count);
      [name, count] = [task.function, 0];
    }
    count += 1;
  }
  if (count > 0) counts.set(name, (counts.get(name) ?? 0) + count);
  const last = ascending.at(-1) ?? -1;
  if (batches === 0 || strictLeft === 0) {
    return { tags: undefined, expected: undefined, reserved: -1, hasFull: false, strictLeft };
  }
  if (!areCounted) {
    const reserved = last >= 0 && partFilled(slices, last, leftMiB) < 1 ? last : -1;
    return { tags: undefined, expected: undefined, reserved, hasFull: false, strictLeft };
  }
  const eachMiB = leftMiB / batches;
  const meanBandwidths = new Map<string, number>();
  for (const kind of kinds) {
    const family = meanBandwidths.has(kind.family) ? undefined : slowdowns.bandwidthsOf(kind);
    if (family === undefined) continue;
    let sum = 0;
    for (const [of, some] of counts) sum += some * family.of(of);
    meanBandwidths.set(kind.family, sum / batches);
  }
  const ofKind = kinds.map(({ family }) => meanBandwidths.get(family) ?? 0);
  const tags = new Float64Array(accounts.length);
  const expected = new Float64Array(accounts.length);
  let hasFull = false;
  for (const order of ascending) {
    if (!(leftMiB > 0)) break;
    const availableMiB = sums.availableMiB[order]!;
    if (!(availableMiB > 0)) continue;
    const tag = Math.min(1, leftMiB / availableMiB);
    leftMiB -= availableMiB;
    tags[order] = tag;
    expected[order] = tag * Math.floor(availableMiB / eachMiB) * ofKind[slices.kindAt[order]!]!;
    if (tag === 1) hasFull = true;
  }
  const reserved = last >= 0 && tags[last]! < 1 ? last : -1;
  return { tags, expected, reserved, hasFull, strictLeft };
}

/** The tag of the place `order`, where waiting best effort needs `neededMiB` in all. */
function partFilled({ ascending, sums }: Slices, order: number, neededMiB: number): number {
  let leftMiB = neededMiB;
  for (const one of ascending) {
    const availableMiB = sums.availableMiB[one]!;
    if (one === order) return leftMiB > 0 && availableMiB > 0 ? Math.min(1, leftMiB / availableMiB) : 0;
    if (availableMiB > 0) leftMiB -= availableMiB;
  }
  return 0;
}

interface Found {
  candidate: Candidate;
  order: number;
}

/** The search for a place for one task of one GPU. */
class Search {
  private readonly isStrict: boolean;
  private readonly kinds: TaskOnKinds;
  /** The instances of the task's function that idle, by the order of their place. */
  private readonly warm: ReadonlyMap<number, Occupant>;
  /** What a new instance costs beyond one that idles: ms, or times the time on a whole GPU. */
  private readonly startCost: number;

  constructor(
    private readonly ledger: Ledger,
    private readonly slices: Slices,
    private readonly asked: { task: Task; request: PlacementRequest; limits: PlacementLimits },
    private readonly pass: Tags,
  ) {
    const { task, request, limits } = asked;
    this.isStrict = task.sloMs !== undefined;
    this.kinds = slices.onKinds(task);
    // Where no time is known, an instance that idles is always the sooner one.
    this.startCost = this.kinds.isTimed ? (task.startMs ?? 0) : 1e6;
    this.warm = limits.isNew === true ? nowhere : idleFor(ledger, request);
  }

  choose(stamp: PlacementStamp): PlacementChoice {
    const { ledger, pass } = this;
    const { request, limits } = this.asked;
    const found = this.isStrict ? this.strictPlace() : this.bestEffortPlace();
    if (found !== undefined && this.isStrict && pass.strictLeft > 0) pass.strictLeft -= 1;
    const chosen = found && [found.candidate];
    const alternatives = alternativesOf(ledger, request, limits, chosen);
    // As it is now: reasons are made when they are read, and places go on. Objects of all places would cost a microsecond.
    const numbers: number[] = [];
    for (const { order } of alternatives) this.pushNumbers(order, numbers);
    if (found !== undefined) this.pushNumbers(found.order, numbers);
    const capacityMiB = found?.candidate.account.capacityMiB ?? 0;
    const { strictLeft } = pass;
    return choiceOf(
      chosen && placementOf(chosen, request, stamp),
      found?.candidate.joined?.id,
      alternatives,
      (passed) => {
        const standing = new Map(passed.map((one, at) => [one.id, this.standingOf(one, numbers, at, strictLeft)]));
        const ofChosen =
          found && this.standingOf({ order: found.order, capacityMiB }, numbers, passed.length, strictLeft);
        return rejectionsOf(passed, request, {
          refuses: ({ id }) => standing.get(id)?.refusal,
          why: ({ account: { id } }) => whyNot(standing.get(id)!, ofChosen),
          compare: ({ account: one }, { account: other }) => rankOf(one, standing) - rankOf(other, standing),
        });
      },
    );
  }

  /** Of the places that best effort will not fill, the one of least η; of all places if none of these will do. */
  private strictPlace(): Found | undefined {
    const { ascending } = this.slices;
    const tags = this.pass.hasFull ? this.pass.tags : undefined;
    let [best, least, busy] = [-1, Infinity, Infinity];
    let [bestOfAll, leastOfAll] = [-1, Infinity];
    // Of equal ones the largest.
    for (let at = ascending.length - 1; at >= 0; at -= 1) {
      const order = ascending[at]!;
      if (!this.mayTake(order)) continue;
      const cost = this.costAt(order);
      if (tags?.[order] === 1) {
        if (cost < leastOfAll) [bestOfAll, leastOfAll] = [order, cost];
      } else if (cost < least || (cost === least && this.busyAt(order) < busy)) {
        [best, least, busy] = [order, cost, this.busyAt(order)];
      }
    }
    if (best < 0) best = bestOfAll;
    return best < 0 ? undefined : (this.candidate(best) ?? this.nextBest());
  }

  /** The best place that facts allow, where they forbid the one that is best by its numbers. */
  private nextBest(): Found | undefined {
    const { tags } = this.pass;
    const able = Array.from(this.slices.ascending, (order) => ({
      order,
      isFull: tags?.[order] === 1,
      cost: this.mayTake(order) ? this.costAt(order) : Infinity,
    })).filter(({ cost }) => cost < Infinity);
    able.sort((one, other) => {
      const byCost = Number(one.isFull) - Number(other.isFull) || one.cost - other.cost;
      return byCost || this.busyAt(one.order) - this.busyAt(other.order);
    });
    for (const { order } of able) {
      const found = this.candidate(order);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** First fit on the smallest places: where nothing has to go for the task, else where idle instances do. */
  private bestEffortPlace(): Found | undefined {
    const { freeMiB, availableMiB } = this.slices.sums;
    return this.firstFit(freeMiB, false) ?? this.firstFit(availableMiB, true);
  }

  private firstFit(memory: Float64Array, mayReclaim: boolean): Found | undefined {
    const { ascending } = this.slices;
    const reserved = this.pass.strictLeft > 0 ? this.pass.reserved : -1;
    for (const order of ascending) {
      if (order === reserved || this.delaysStrict(order)) continue;
      if (!this.isWarmAt(order) && !hasMemory(memory[order]!, this.needAt(order))) continue;
      const found = this.candidate(order);
      if (found !== undefined && (mayReclaim || !found.candidate.reclaims)) return found;
    }
    return undefined;
  }

  /** Whether strict runs would take too much of their SLO beside the task (equation 2). */
  private delaysStrict(order: number): boolean {
    const { bandwidth, mostBandwidth, kindAt } = this.slices;
    const own = this.kinds.bandwidths[kindAt[order]!]!;
    return own >= 0 && bandwidth[order]! + own > mostBandwidth[order]!;
  }

  private candidate(order: number): Found | undefined {
    const { request, limits } = this.asked;
    const account = this.slices.accounts[order]!;
    if (limits.allowed?.has(account.id) === false) return undefined;
    const candidate = candidateAt(account, request, limits, this.warm.get(order));
    return candidate && { candidate, order };
  }

  /** Whether a place would do by its memory. */
  private mayTake(order: number): boolean {
    return hasMemory(this.slices.sums.availableMiB[order]!, this.needAt(order)) || this.isWarmAt(order);
  }

  private needAt(order: number): number {
    const { memoryMiB } = this.asked.request;
    return memoryMiB > 0 ? memoryMiB : this.slices.accounts[order]!.capacityMiB;
  }

  /** Time of the task on a place, a new instance's start included: ms, or relative. */
  private costAt(order: number): number {
    const time = this.timeAt(order);
    return this.isWarmAt(order) ? time : time + this.startCost;
  }

  private timeAt(order: number): number {
    return this.kinds.times[this.slices.kindAt[order]!]! * this.interferenceAt(order);
  }

  /** Whether an instance of the task's function idles on a place. */
  private isWarmAt(order: number): boolean {
    return this.warm.size > 0 && this.warm.has(order);
  }

  /** max(FBR_k + Σ FBR_i, 1) with the expected best effort among i (equation 2), or a constant beside others. */
  private interferenceAt(order: number): number {
    const { bandwidth, kindAt } = this.slices;
    const { tags, expected } = this.pass;
    const kind = kindAt[order]!;
    const own = this.kinds.bandwidths[kind]!;
    if (own >= 0) return Math.max(1, own + bandwidth[order]! + (expected?.[order] ?? 0));
    return this.busyAt(order) > 0 || (tags?.[order] ?? 0) > 0 ? this.kinds.constants[kind]! : 1;
  }

  private busyAt(order: number): number {
    return this.slices.accounts[order]?.busy ?? Infinity;
  }

  /**
   * Adds the two numbers that decide about a place: of strict work its time and the place's tag, of best effort the bandwidth
   * that would be required there, and the most of it beside which strict runs are in time.
   */
  private pushNumbers(order: number, numbers: number[]): void {
    if (this.isStrict) {
      numbers.push(this.timeAt(order), this.pass.tags?.[order] ?? 0);
      return;
    }
    const { bandwidth, mostBandwidth, kindAt } = this.slices;
    numbers.push(bandwidth[order]! + this.kinds.bandwidths[kindAt[order]!]!, mostBandwidth[order]!);
  }

  /** The standing of the place whose two numbers are the `at`th, with `strictLeft` as it was then. */
  private standingOf(
    { order, capacityMiB }: { order: number; capacityMiB: number },
    numbers: readonly number[],
    at: number,
    strictLeft: number,
  ): Standing {
    const { isStrict, pass, kinds } = this;
    const [one, other] = [numbers[2 * at]!, numbers[2 * at + 1]!];
    if (!isStrict) {
      let refusal: Refusal | undefined;
      if (order === pass.reserved && strictLeft > 0) {
        refusal = { reason: 'kept for strict work that waits', numbers: { strict: strictLeft } };
      } else if (one > other) {
        const taken = { bandwidth: one, mostBandwidth: other };
        refusal = { reason: 'strict runs there would take too much of their SLO', numbers: taken };
      }
      return { isStrict, rank: capacityMiB, capacityMiB, refusal, tag: 0, slowdown: 0, isWarm: false };
    }
    const isWarm = this.isWarmAt(order);
    const rank = (isWarm ? one : one + this.startCost) + (other === 1 ? 1e12 : 0);
    return { isStrict, rank, capacityMiB, refusal: undefined, tag: other, slowdown: one / kinds.leastTime, isWarm };
  }
}

const nowhere: ReadonlyMap<number, Occupant> = new Map();

/** The instances that idle and that a request may use, by the order of their place. */
function idleFor(ledger: Ledger, request: PlacementRequest): ReadonlyMap<number, Occupant> {
  let idle: Map<number, Occupant> | undefined;
  for (const { order, occupants } of ledger.withInstances(request, true)) {
    const joined = instanceFor(occupants, request);
    if (joined?.users === 0) (idle ??= new Map<number, Occupant>()).set(order, joined);
  }
  return idle ?? nowhere;
}

/** What decided about a place, as it was then. */
interface Standing {
  isStrict: boolean;
  /** The lowest one is the best. */
  rank: number;
  capacityMiB: number;
  refusal: Refusal | undefined;
  tag: number;
  slowdown: number;
  isWarm: boolean;
}

function rankOf({ id }: Pick<Alternative, 'id'>, standing: ReadonlyMap<string, Standing>): number {
  return standing.get(id)?.rank ?? Infinity;
}

function hasMemory(thereMiB: number, needMiB: number): boolean {
  return thereMiB > 0 && thereMiB >= needMiB;
}

/** The reason against a place that would do. */
function whyNot(one: Standing, chosen: Standing | undefined): Refusal {
  const { isStrict, capacityMiB, slowdown, tag, isWarm } = one;
  // A place that would do is there only if one was chosen.
  if (chosen === undefined) return { reason: 'none was chosen', numbers: { capacityMiB } };
  if (!isStrict) {
    const numbers = { capacityMiB, chosenCapacityMiB: chosen.capacityMiB };
    return { reason: 'the chosen one is the first that will do, the smallest first', numbers };
  }
  if (tag === 1 && chosen.tag < 1) {
    return {
      reason: 'waiting best effort will fill it, and not the chosen one',
      numbers: { tag, chosenTag: chosen.tag },
    };
  }
  const numbers = { slowdown, chosenSlowdown: chosen.slowdown };
  if (chosen.isWarm && !isWarm && slowdown <= chosen.slowdown) {
    return { reason: 'no instance of the function idles there, as on the chosen one', numbers };
  }
  if (slowdown > chosen.slowdown) return { reason: 'it would be slower there than on the chosen one', numbers };
  return { reason: 'no sooner there than on the chosen one', numbers };
}
