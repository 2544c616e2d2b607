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
