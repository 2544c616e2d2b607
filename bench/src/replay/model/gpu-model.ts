import { fairParts } from '../../stand-in-model.js';

/** A workload with its MPS share, 0 < share ≤ 1. */
interface ModelClient {
  workload: ModelWorkload;
  share: number;
}

/** The clock never falls below this part of its base, however much power is asked for. */
const lowestClock = 0.5;

/**
 * Time of each client beside the others under MPS over its time alone at the full share, without noise: the stretch of
 * its effective share, times what the neighbours' cache and memory traffic cost, times what the power cap takes off the
 * clock. Traffic and power of a client follow its speed.
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

/** Clients that take turns on the whole GPU: each is slowed down by their number. */
export function timesliceSlowdowns(clients: number): Float64Array {
  return new Float64Array(clients).fill(clients);
}

/** Time at `share` over the time at the full share, linear between whole percents. */
export function stretchAt({ stretch }: ModelWorkload, share: number): number {
  const percent = Math.min(100, Math.max(1, share * 100));
  const below = Math.floor(percent);
  const at = stretch[below] as number;
  return below === 100 ? at : at + (percent - below) * ((stretch[below + 1] as number) - at);
}

/**
 * A stretch per percent from a function of the share on (0, 1], which need not be normalised. It is made to fall, and
 * 1 at the full share.
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

/** The smallest whole percent within 2 % of the full share's time, as a fraction. */
export function saturationOf(stretch: Float64Array): number {
  return (
    Math.max(
      1,
      stretch.findIndex((value) => value <= 1.02),
    ) / 100
  );
}

/** What a client may have of the SMs. */
interface ShareDemand {
  /** MPS share, 0 < share ≤ 1. */
  share: number;
  /** The smallest share that serves it as well as the whole GPU would. */
  saturation: number;
}

/**
 * What each client gets of the SMs: the max-min fair division of the whole among demands of min(share, saturation).
 * No client gets more than it demands, and they sum to 1 at most.
 */
export function effectiveShares(clients: readonly ShareDemand[]): number[] {
  return fairParts(
    clients.map(({ share, saturation }) => Math.min(share, saturation)),
    1,
  );
}

/** What the replay model is fitted with: one GPU type in one mode. Utilisations are fractions. */
export interface ModelParameters {
  /** Slowdown that any neighbour costs, and per unit of the neighbours' L2 and DRAM utilisation. None is negative. */
  contention: { base: number; perL2: number; perDram: number };
  power: {
    idleW: number;
    capW: number;
    baseMhz: number;
    /** What the clock drops by for each watt that is asked for above the cap. */
    mhzPerW: number;
  };
  /** Standard deviation of the logarithm of a run's time around what the model says. */
  noise: number;
}

/** A workload as the model needs it: one model in one batch. */
export interface ModelWorkload {
  name: string;
  /** Time at a share over the time at the full share, at 0, 1, ... 100 % (the first is that of 1 %). */
  stretch: Float64Array;
  /** The smallest share within 2 % of the full share's time. */
  saturation: number;
  /** Alone at the full share, fractions. */
  l2Util: number;
  dramUtil: number;
  /** Alone at the full share, above the idle GPU. */
  powerW: number;
}
