import { fairParts } from '../../stand-in-model.js';

/** A workload with its MPS share, 0 < share ≤ 1. */
interface ModelClient {
  workload: ModelWorkload;
  share: number;
}

/** The clock never falls below this fraction of its base, at any power demand. */
const lowestClock = 0.5;

/**
 * Time of each client beside the others under MPS over its solo time at the full share, without noise. The result
 * multiplies the stretch of its effective share, the cost of the neighbours' cache and memory traffic, and the clock's
 * loss to the power cap. Traffic and power of a client are proportional to its speed.
 */
export function mpsSlowdowns(parameters: ModelParameters, clients: readonly ModelClient[]): Float64Array {
  const { contention, power } = parameters;
  const shares = effectiveShares(clients.map(({ workload, share }) => ({ share, saturation: workload.saturation })));
  const slowdowns = new Float64Array(clients.length);
  let l2 = 0;
  let dram = 0;
  let watts = power.idleW;
  for (const [i, { workload }] of clients.entries()) {
    const stretch = stretchAt(workload, shares[i] as number);
    slowdowns[i] = stretch;
    l2 += workload.l2Util / stretch;
    dram += workload.dramUtil / stretch;
    watts += workload.powerW / stretch;
  }
  const drop = (power.mhzPerW * Math.max(0, watts - power.capW)) / power.baseMhz;
  const clock = clients.length > 1 ? Math.max(lowestClock, 1 - drop) : 1;
  const base = clients.length > 1 ? contention.base : 0;
  for (const [i, { workload }] of clients.entries()) {
    const own = slowdowns[i] as number;
    const traffic =
      contention.perL2 * (l2 - workload.l2Util / own) + contention.perDram * (dram - workload.dramUtil / own);
    slowdowns[i] = (own * Math.max(1, 1 + base + traffic)) / clock;
  }
  return slowdowns;
}

/** Slowdowns of clients that take turns on the whole GPU, which are equal to their number. */
export function timesliceSlowdowns(clients: number): Float64Array {
  return new Float64Array(clients).fill(clients);
}

/** Time at `share` over the time at the full share, linear between whole percentages. */
export function stretchAt({ stretch }: Pick<ModelWorkload, 'stretch'>, share: number): number {
  const percent = Math.min(100, Math.max(1, share * 100));
  const below = Math.floor(percent);
  const at = stretch[below] as number;
  return below === 100 ? at : at + (percent - below) * ((stretch[below + 1] as number) - at);
}

/**
 * A stretch for each percentage from a function of the share on (0, 1], which need not be normalised. The result falls
 * with the share and is 1 at the full share.
 */
export function stretchTable(time: (share: number) => number): Float64Array {
  const full = time(1);
  const table = new Float64Array(101);
  table[100] = 1;
  for (let percent = 99; percent >= 1; percent -= 1) {
    table[percent] = Math.max(table[percent + 1] as number, time(percent / 100) / full);
  }
  table[0] = table[1] as number;
  return table;
}

/** The smallest whole percentage whose time exceeds that of the full share by `tolerance` (a fraction) at most, as a fraction. */
export function saturationOf(stretch: Float64Array, tolerance = 0.02): number {
  const percent = stretch.findIndex((value) => value <= 1 + tolerance);
  return Math.max(1, percent) / 100;
}

/** The least product of share and time over the shares: GPU time for each ms of solo time where it is used best. */
export function leastArea(stretch: Float64Array): number {
  return stretch.reduce((least, time, percent) => (percent === 0 ? least : Math.min(least, (percent / 100) * time)), 1);
}

/** Limits of what a client can use of the SMs. */
interface ShareDemand {
  /** MPS share, 0 < share ≤ 1. */
  share: number;
  /** The smallest share at which the client is as fast as on the whole GPU. */
  saturation: number;
}

/**
 * The SMs that each client gets: the max-min fair division of the whole among demands of min(share, saturation). No
 * client gets more than its demand, and the sum is at most 1.
 */
export function effectiveShares(clients: readonly ShareDemand[]): number[] {
  return fairParts(
    clients.map(({ share, saturation }) => Math.min(share, saturation)),
    1,
  );
}

/** Fitted parameters of the replay model: one GPU type in one mode. Utilisations are fractions. */
export interface ModelParameters {
  /** Slowdown by the presence of neighbours, and per unit of their L2 and DRAM utilisation. No value is negative. */
  contention: { base: number; perL2: number; perDram: number };
  power: {
    idleW: number;
    capW: number;
    baseMhz: number;
    /** Fall of the clock for each watt of demand above the cap. */
    mhzPerW: number;
  };
  /** Standard deviation of the logarithm of a run's time around the model's value. */
  noise: number;
}

/** A workload's data for the model: one model in one batch. */
export interface ModelWorkload {
  name: string;
  /** Time at a share over the time at the full share, at 0, 1, ... 100 % (the first is that of 1 %). */
  stretch: Float64Array;
  /** The smallest share within 2 % of the full share's time. */
  saturation: number;
  /** L2 utilisation alone at the full share, as a fraction. */
  l2Util: number;
  dramUtil: number;
  /** Power alone at the full share, above idle, W. */
  powerW: number;
}
