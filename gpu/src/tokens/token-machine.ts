/* eslint-disable @typescript-eslint/no-non-null-assertion -- places run below the count that each column was made for */
import { tokenStates, type TokenState } from '@gpuwhisk/common/gpu';
import { LaunchCycles, RateWindows, SoloRates } from './launch-history.js';

/** How a budget grows while neighbours are idle (Dilu, section 3.4.1). */
const growth = 1.3;
/** What an emergency leaves to the neighbours at least, as a part of their solo rate. */
export const leastShare = 0.05;
/**
 * Periods for which a client may be violated at a stretch, and the part of one that it regains in each other. It marks its
 * cycles itself: those that stay long with its neighbours at `leastShare` for two seconds are not long because of them.
 */
export const emergencyPeriods = 400;
const regainedPerPeriod = 1 / 5;

const numberOf = (state: TokenState): number => tokenStates.indexOf(state);
const [none, inEmergency] = [numberOf('NONE'), numberOf('EMERGENCY')] as const;
const [recovery, contention] = [numberOf('RECOVERY'), numberOf('CONTENTION')] as const;

/**
 * Issues every client its blocks for the next period: Dilu's algorithm 2, with these rules where it is silent. A GPU
 * is in EMERGENCY as long as any client, its owners, is violated; owners' limits are scaled to a sum of 1; neighbours
 * get min(request, last) / (1 + ΔT), with the largest ΔT and never below `leastShare`. A client whose last cycle is
 * long ago is no owner, nor is one that was for `emergencyPeriods` and has not regained them. A running cycle counts as
 * soon as it is longer than it should be. Back in CONTENTION, those without SLO regain their request step by step; one whose
 * request is changed goes on from the new one at once. Where no function has an SLO, each is treated as the algorithm
 * treats those that have. Allocates nothing in step().
 */
export class TokenMachine {
  private readonly windows: RateWindows;
  private readonly cycles: LaunchCycles;
  private readonly solo: SoloRates;
  private readonly epochs: Float64Array;
  private readonly cyclesSeen: Float64Array;
  /** The last rate issued, as a part of the solo rate: it outlives a change of that. */
  private readonly last: Float64Array;
  /** The request that it was issued by. */
  private readonly asked: Float64Array;
  /** ΔT of owners; 0 for the rest. */
  private readonly violated: Float64Array;
  /** Periods for which it may still be violated. */
  private readonly patience: Float64Array;

  constructor(private readonly columns: TokenColumns) {
    const places = columns.epoch.length;
    this.windows = new RateWindows(places);
    this.cycles = new LaunchCycles(places);
    this.solo = new SoloRates(places);
    this.epochs = new Float64Array(places);
    this.cyclesSeen = new Float64Array(places);
    this.last = new Float64Array(places);
    this.asked = new Float64Array(places);
    this.violated = new Float64Array(places);
    this.patience = new Float64Array(places);
  }

  /** One period: reads what happened in the last one and writes `budget`, `soloRate` and `state` of every client. */
  step(): void {
    const { epoch, gpu, state } = this.columns;
    this.windows.advance();
    for (let place = 0; place < epoch.length; place += 1) {
      this.observe(place);
      this.tire(place);
    }
    for (let place = 0; place < epoch.length; place += 1) if (epoch[place] !== 0) this.learn(place);
    for (let place = 0; place < epoch.length; place += 1) if (epoch[place] !== 0) this.issue(place);
    for (let place = 0; place < epoch.length; place += 1) {
      if (epoch[place] !== 0) state[place] = this.stateNumberOf(gpu[place]!);
    }
  }

  /** Of the GPU as the last step found it. */
  stateOf(gpu: number): TokenState {
    return tokenStates[this.stateNumberOf(gpu)]!;
  }

  private stateNumberOf(gpu: number): number {
    let clients = 0;
    let emergency = false;
    let active = 0;
    for (let place = 0; place < this.epochs.length; place += 1) {
      if (!this.isOn(place, gpu)) continue;
      clients += 1;
      if (this.violated[place]! > 0) emergency = true;
      if (!this.windows.isIdle(place)) active += 1;
    }
    if (clients <= 1) return none;
    if (emergency) return inEmergency;
    return active > 1 ? contention : recovery;
  }

  private observe(place: number): void {
    const { epoch, request, used, cycles, cycleMs, cycleBatch, runningMs, runningBatch, violation } = this.columns;
    if (this.epochs[place] !== epoch[place]) {
      this.epochs[place] = epoch[place]!;
      this.windows.clear(place);
      this.cycles.clear(place);
      this.solo.clear(place);
      this.cyclesSeen[place] = cycles[place]!;
      this.asked[place] = NaN;
      this.violated[place] = 0;
      this.patience[place] = emergencyPeriods;
    }
    if (epoch[place] === 0) return;
    if (this.asked[place] !== request[place]) {
      this.asked[place] = request[place]!;
      this.last[place] = request[place]!;
    }
    this.windows.record(place, used[place]! > 0);
    if (cycles[place] !== this.cyclesSeen[place]) {
      this.cyclesSeen[place] = cycles[place]!;
      this.cycles.record(place, cycleBatch[place]!, cycleMs[place]!);
    }
    const isRunning = runningMs[place]! > 0;
    if (!(violation[place]! > 0) || (!isRunning && this.windows.isIdle(place))) {
      this.violated[place] = 0;
      return;
    }
    const change = Math.max(
      cycles[place]! > 0 ? this.cycles.growth(place, cycleBatch[place]!, cycleMs[place]!) : 0,
      isRunning ? this.cycles.growth(place, runningBatch[place]!, runningMs[place]!) : 0,
    );
    this.violated[place] = change > violation[place]! && this.patience[place]! >= 1 ? change : 0;
  }

  /** What its neighbours still bear. */
  private tire(place: number): void {
    const left = this.patience[place]! + (this.violated[place]! > 0 ? -1 : regainedPerPeriod);
    this.patience[place] = Math.min(emergencyPeriods, left);
  }

  private learn(place: number): void {
    const { gpu, used, held, maxTokens, soloRate } = this.columns;
    if (maxTokens[place]! > 0) {
      soloRate[place] = maxTokens[place]!;
      return;
    }
    if (used[place]! > 0 && held[place] === 0) {
      let alone = true;
      for (let other = 0; other < used.length; other += 1) {
        if (other !== place && used[other]! > 0 && this.isOn(other, gpu[place]!)) alone = false;
      }
      this.solo.record(place, used[place]!, alone);
    }
    soloRate[place] = this.solo.rateOf(place);
  }

  private issue(place: number): void {
    const { gpu, limit, soloRate, budget } = this.columns;
    const share = Math.min(this.shareOf(place), limit[place]!);
    this.last[place] = share;
    const isAlone = this.countOthers(gpu[place]!, place) === 0;
    // Its whole rate is no bound: a peak above the 99th percentile is no reason to wait.
    const unbounded = soloRate[place] === 0 || (isAlone && limit[place]! >= 1);
    budget[place] = unbounded ? Infinity : Math.max(1, soloRate[place]! * share);
  }

  /** The part of its solo rate that a client is issued, before its limit. */
  private shareOf(place: number): number {
    const { gpu, request, limit, violation, cycles } = this.columns;
    const last = this.last[place]!;
    let others = 0;
    let othersIdle = true;
    let protectedClients = 0;
    let protectedIdle = true;
    let owners = 0;
    let ownersLimit = 0;
    let worst = 0;
    for (let other = 0; other < gpu.length; other += 1) {
      if (!this.isOn(other, gpu[place]!)) continue;
      const idle = this.windows.isIdle(other);
      if (other !== place) {
        others += 1;
        if (!idle) othersIdle = false;
      }
      // Without marks a client is never sensitive.
      if (violation[other]! > 0 && cycles[other]! > 0) {
        protectedClients += 1;
        if (!idle) protectedIdle = false;
      }
      if (this.violated[other]! > 0) {
        owners += 1;
        ownersLimit += limit[other]!;
        worst = Math.max(worst, this.violated[other]!);
      }
    }
    if (others === 0) return limit[place]!;
    if (this.violated[place]! > 0) return limit[place]! / Math.max(1, ownersLimit);

    const isProtected = violation[place]! > 0 && cycles[place]! > 0;
    if (isProtected || protectedClients === 0) {
      if (this.windows.isIdle(place) || !othersIdle) return request[place]!;
      return last * growth;
    }
    if (owners > 0) return Math.max(leastShare, Math.min(request[place]!, last) / (1 + worst));
    if (protectedIdle) return last * growth;
    return last < request[place]! ? Math.min(request[place]!, last * growth) : last;
  }

  private countOthers(gpu: number, place: number): number {
    let count = 0;
    for (let other = 0; other < this.epochs.length; other += 1)
      if (other !== place && this.isOn(other, gpu)) count += 1;
    return count;
  }

  private isOn(place: number, gpu: number): boolean {
    return this.epochs[place] !== 0 && this.columns.gpu[place] === gpu;
  }
}

/**
 * What the token machine reads and writes: one array a field, one place a client. On a node the arrays lie in memory
 * that the ticking thread shares (see native/token-server/board.h), which has them in this order.
 */
export const columnNames = [
  // Written by the agent.
  /** Changes whenever another client takes the place; 0 where it is free. */
  'epoch',
  /** Which GPU: any number, equal for those that share one. */
  'gpu',
  /** Fractions of its solo rate: request ≤ limit ≤ 1. */
  'request',
  'limit',
  /** Blocks that it launches in a period when alone at 100 %; 0: to be learned. */
  'maxTokens',
  /** Part by which its launch cycles may grow before it counts as violated; 0 for a client without an SLO. */
  'violation',
  // Written by the ticking thread.
  /** Blocks launched in the last period. */
  'used',
  /** 1 where a launch had to wait in it. */
  'held',
  /** Launch cycles that have ended so far, and the last one's length and batch size. */
  'cycles',
  'cycleMs',
  'cycleBatch',
  /** For how long the present cycle has run, 0 between cycles, and its batch size. */
  'runningMs',
  'runningBatch',
  // Written by the machine.
  /** Blocks for the next period; Infinity: as many as it likes. */
  'budget',
  /** The solo rate that it works with, given or learned; 0 while it is not known. */
  'soloRate',
  /** State of its GPU, as an index of `tokenStates`. */
  'state',
] as const;

export type ColumnName = (typeof columnNames)[number];
export type TokenColumns = Readonly<Record<ColumnName, Float64Array>>;

/** Bytes that the columns of `places` clients take. */
export const columnsBytes = (places: number): number => columnNames.length * places * Float64Array.BYTES_PER_ELEMENT;

/** Columns over `buffer` from `offset` on, one after the other. Throws RangeError if they do not fit. */
export function columnsOver(buffer: ArrayBufferLike, offset: number, places: number): TokenColumns {
  const entries = columnNames.map((name, i) => [
    name,
    new Float64Array(buffer, offset + i * places * Float64Array.BYTES_PER_ELEMENT, places),
  ]);
  return Object.fromEntries(entries) as TokenColumns;
}
