// Rented machines in virtual time: the stage `procure` on the emulated market, and what a planner pays that knows the future.
import type { Procure } from '@gpuwhisk/gpu/procure/procure';
import { hasSpot, isRevoked } from '@gpuwhisk/gpu/procure/spot-market';
import type { Market } from '@gpuwhisk/gpu/view/decision';
import type { MachineState, ProcurementState } from '@gpuwhisk/gpu/view/view';

/** A market and the time that is looked at. */
export interface Cloud {
  seed: number;
  /** Probability of a revocation in an interval, and that a request for a spot machine is refused. */
  revocation: number;
  everyS: number;
  noticeS: number;
  bootS: number;
  /** Per hour of one machine. */
  prices: Readonly<Record<Market, number>>;
  machines: number;
  lengthS: number;
}

/** A machine that was rented, times in s. It is paid from `fromS` to `untilS`. */
export interface Rented {
  name: string;
  market: Market;
  fromS: number;
  upS: number;
  /** When its end was announced; Infinity: never. */
  noticedS: number;
  untilS: number;
}

/** The stage is asked at least so often, s. */
const askedEveryS = 60;
/** Answers to one change that the stage may react to. */
const mostAnswers = 64;

/** Lets the stage rent machines, second by second. The first ones are asked for before 0, so that they are up at 0. */
export function rent(procure: Procure, cloud: Cloud): Rented[] {
  const { everyS, noticeS, bootS, prices, machines: wanted, lengthS } = cloud;
  const all: Rented[] = [];
  let live: Rented[] = [];
  const refusedAt: Partial<Record<Market, number>> = {};
  let requests = 0;
  for (let nowS = -bootS; nowS < lengthS; nowS += 1) {
    let isNews = (nowS + bootS) % askedEveryS === 0;
    for (const one of live) {
      if (one.upS === nowS) isNews = true;
      const passedS = nowS - one.fromS;
      const isDrawn = one.market === 'spot' && one.noticedS === Infinity && passedS > 0 && passedS % everyS === 0;
      if (!isDrawn || !isRevoked(cloud, one.name, passedS / everyS)) continue;
      one.noticedS = nowS;
      one.untilS = nowS + noticeS;
      isNews = true;
    }
    if (live.some(({ untilS }) => untilS <= nowS)) {
      live = live.filter(({ untilS }) => untilS > nowS);
      isNews = true;
    }
    for (let answers = 0; isNews && answers < mostAnswers; answers += 1) isNews = ask(nowS);
  }
  for (const one of live) one.untilS = Math.min(one.untilS, lengthS);
  return all;

  /** Whether something came of it. */
  function ask(nowS: number): boolean {
    let isNews = false;
    for (const action of procure({ at: nowS * 1000, nodes: [], procurement: stateAt(nowS) })) {
      isNews = true;
      if (action.kind === 'give-back') {
        const given = live.find(({ name }) => name === action.node);
        live = live.filter((one) => one !== given);
        if (given !== undefined) given.untilS = nowS;
        continue;
      }
      requests += 1;
      const { market } = action;
      if (market === 'spot' && !hasSpot(cloud, requests)) {
        refusedAt[market] = nowS * 1000;
        continue;
      }
      const name = `machine${requests}`;
      const one = { name, market, fromS: nowS, upS: nowS + bootS, noticedS: Infinity, untilS: Infinity };
      live.push(one);
      all.push(one);
    }
    return isNews;
  }

  function stateAt(nowS: number): ProcurementState {
    const machines = live.map(({ name, market, upS, noticedS, untilS }): MachineState => ({
      ...{ id: name, market, node: name, pricePerHour: prices[market] },
      state: noticedS < Infinity ? 'leaving' : upS <= nowS ? 'up' : 'booting',
      ...(noticedS < Infinity && { leavesAt: untilS * 1000 }),
    }));
    return { wanted, machines, prices, refusedAt };
  }
}

/** What machines cost from 0 to the end, boots before 0 included, with the prices of a market. */
export function costOf(rented: readonly Rented[], { prices }: Pick<Cloud, 'prices'>): number {
  return rented.reduce((sum, { market, fromS, untilS }) => sum + (prices[market] * (untilS - fromS)) / 3600, 0);
}

/** Machine seconds in which fewer than the wanted machines serve, as a part of the wanted ones. A machine with a notice serves to its end. */
export function missingPart(rented: readonly Rented[], { machines, lengthS }: Cloud): number {
  const changes = new Map<number, number>();
  const add = (atS: number, by: number): void => {
    const within = Math.min(lengthS, Math.max(0, atS));
    changes.set(within, (changes.get(within) ?? 0) + by);
  };
  for (const { upS, untilS } of rented) {
    if (upS >= untilS) continue;
    add(upS, 1);
    add(untilS, -1);
  }
  let [up, before, missing] = [0, 0, 0];
  for (const [atS, by] of [...changes].sort(([one], [other]) => one - other)) {
    missing += (atS - before) * Math.max(0, machines - up);
    up += by;
    before = atS;
  }
  missing += (lengthS - before) * Math.max(0, machines - up);
  return missing / (machines * lengthS);
}

/** Steps in which the bound decides, s. */
const stepS = 30;

/**
 * The least cost of keeping one machine serving all the time, for a planner that knows when each machine of the market would be revoked.
 * Each step has one request for a spot machine, which is refused with the market's probability. A change of machine pays the boot of the
 * new one, and any machine can be left at any step. Machines on demand never lack.
 */
export function clairvoyantCost(
  { seed, revocation, everyS, noticeS, bootS, prices, lengthS }: Cloud,
  slot: number,
): number {
  const steps = Math.ceil(lengthS / stepS);
  const bootSteps = Math.ceil(bootS / stepS);
  const priceOf = (market: Market, seconds: number): number => (prices[market] * seconds) / 3600;
  /** Offers that can serve: the step from which on, the step of their end, and the least cost with which they serve until now. */
  let offers: { upAt: number; endAt: number; cost: number }[] = [];
  const lastAt = steps + bootSteps;
  const lifeSteps = (name: string, request: number): number => {
    if (revocation === 0) return lastAt + 1;
    if (!hasSpot({ seed: seed + slot * 7919, revocation }, request)) return 0;
    for (let interval = 1; ; interval += 1) {
      const noticed = interval * everyS;
      if (noticed / stepS > lastAt) return lastAt + 1;
      if (isRevoked({ seed, revocation }, name, interval)) return Math.floor((noticed + noticeS) / stepS);
    }
  };
  let onDemand = priceOf('on-demand', bootS);
  let best = 0;
  for (let at = 0; at <= steps; at += 1) {
    // The offer that was asked for a boot ago.
    const endAt = at - bootSteps + lifeSteps(`bound${slot}-${at}`, at + 1);
    if (endAt > at) offers.push({ upAt: at, endAt, cost: Infinity });
    offers = offers.filter((one) => one.endAt > at);
    best = at === 0 ? 0 : offers.reduce((least, { cost }) => Math.min(least, cost), onDemand);
    if (at === steps) return best;
    onDemand = Math.min(onDemand, best + priceOf('on-demand', bootS)) + priceOf('on-demand', stepS);
    for (const one of offers) {
      const taken = best + priceOf('spot', bootS + (at - one.upAt) * stepS);
      one.cost = Math.min(one.cost, taken) + priceOf('spot', stepS);
    }
  }
  return best;
}
