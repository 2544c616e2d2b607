// Rented machines: the stage `procure` on the emulated market in the simulator, and what a planner pays that knows the future.
import { departureMarginMs } from '@gpuwhisk/common/gpu-nodes';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '@gpuwhisk/gpu/policies/make-policy';
import { capacityModel } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { proteanProcurementDefaults } from '@gpuwhisk/gpu/algorithms/protean/procure';
import { hasSpot, isRevoked } from '@gpuwhisk/gpu/stages/procure/spot-market';
import { replay, type GpuTruth } from '@gpuwhisk/gpu/simulate/replay';
import type { RentedMachine, SimulatedProvider } from '@gpuwhisk/gpu/simulate/simulated-provider';
import type { Market } from '@gpuwhisk/gpu/view/decision';
import '../../baselines/register.js';

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

/** Time limit of the functions, s: a machine takes only tasks whose time limit ends before it goes. */
const timeLimitS = 10;

/** Revocations are drawn for so long, s. */
const longestS = 86_400;

/** A provider with a market. */
export function providerOf(cloud: Cloud): SimulatedProvider {
  const { everyS, noticeS, bootS, prices, machines: wanted } = cloud;
  return {
    ...{ wanted, prices, bootMs: bootS * 1000, closesMs: departureMarginMs + timeLimitS * 1000 },
    machine(market, request) {
      const never = { noticedMs: Infinity, goneMs: Infinity };
      if (market !== 'spot') return never;
      if (!hasSpot(cloud, request)) return undefined;
      for (let interval = 1; interval * everyS < longestS; interval += 1) {
        if (!isRevoked(cloud, `machine${request}`, interval)) continue;
        return { noticedMs: interval * everyS * 1000, goneMs: (interval * everyS + noticeS) * 1000 };
      }
      return never;
    },
  };
}

/** Device of a rented machine, and a truth for replays without tasks. */
const device = { type: 'a100-40', mode: 'mps', memoryMiB: 1 } as const;
const noTruth: GpuTruth = { noise: 0, used: () => 0, slowdowns: () => new Float64Array() };

/** Lets stage `procure: protean` rent machines. The first ones are asked for before 0, so that they are up at 0. */
export function rent(settings: Partial<typeof proteanProcurementDefaults>, cloud: Cloud): readonly RentedMachine[] {
  const random = seededRandom(1);
  const choice = { base: 'fcfs', procure: 'protean', settings };
  const policy = makePolicy(choice, { predictorOf: () => capacityModel, random, admission: 'best-effort' });
  const span = { fromMs: -cloud.bootS * 1000, untilMs: cloud.lengthS * 1000 };
  const cluster = { places: [], more: [device], provider: providerOf(cloud), ...span };
  return replay([], cluster, noTruth, policy, random).machines;
}

/** What machines cost until the end, boots before 0 included, with the prices of a market. */
export function costOf(
  rented: readonly RentedMachine[],
  { prices, lengthS }: Pick<Cloud, 'prices' | 'lengthS'>,
): number {
  return rented.reduce((sum, { market, askedAt, goneAt }) => {
    return sum + (prices[market] * (Math.min(goneAt, lengthS * 1000) - askedAt)) / 3_600_000;
  }, 0);
}

/** Machine time in which fewer than the wanted machines serve, as a part of the wanted one. A machine with a notice serves to its end. */
export function missingPart(rented: readonly RentedMachine[], { machines, lengthS }: Cloud): number {
  const endMs = lengthS * 1000;
  const changes = new Map<number, number>();
  const add = (at: number, by: number): void => {
    const within = Math.min(endMs, Math.max(0, at));
    changes.set(within, (changes.get(within) ?? 0) + by);
  };
  for (const { upAt, goneAt } of rented) {
    if (upAt >= goneAt) continue;
    add(upAt, 1);
    add(goneAt, -1);
  }
  let [up, before, missing] = [0, 0, 0];
  for (const [at, by] of [...changes].sort(([one], [other]) => one - other)) {
    missing += (at - before) * Math.max(0, machines - up);
    up += by;
    before = at;
  }
  missing += (endMs - before) * Math.max(0, machines - up);
  return missing / (machines * endMs);
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
