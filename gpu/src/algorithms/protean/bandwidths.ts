// Fractional bandwidth requirements (FBR) of functions on one type of GPU, learned from co-located runs (PROTEAN, section 3).
import { keepNewest } from '@gpuwhisk/common/collections';

/** A neighbour of a run, with the part of the run in which it was there. */
export interface BesidePart {
  /** `/namespace/action`. */
  name: string;
  part: number;
}

/** A run beside others: how many times its time alone on the same place it took. */
interface CoLocated {
  name: string;
  beside: readonly BesidePart[];
  slowdown: number;
}

interface Solved {
  /** The last solutions of equation 1. */
  solutions: number[];
  /** Their mean, as it is in use. */
  value: number;
}

/** The state as plain data. */
export interface BandwidthState {
  solved: (readonly [string, { solutions: readonly number[]; value: number }])[];
  /** Slowdowns that were learned from, the newest last. */
  slowdowns: readonly number[];
  heldOut: readonly CoLocated[];
  /** Co-located runs so far. */
  seen: number;
}

const mostFunctions = 1000;
/** Solutions of equation 1 whose mean is a function's requirement. */
const mostSolutions = 16;
/** A requirement of four times the bandwidth slows a run alone down fourfold: beyond that a time was wrong. */
const mostBandwidth = 4;
/** Slowdowns beyond these bounds come from a wrong time alone, or from a run that was stopped. */
const [leastSlowdown, mostSlowdown] = [0.5, 100];
/** Slowdowns up to this one count as none: the equation then bounds the requirement and does not give it. */
const uncontended = 1.02;
/** Every so many co-located runs one is held out; the last ones of both kinds are kept. */
const [heldOutEvery, mostHeldOut, mostLearned] = [5, 64, 64];
/** Held-out runs from which on errors are compared. */
const leastHeldOut = 5;
/** A requirement in use changes with its mean by this part: sums of requirements then hold for longer. */
const worthwhile = 0.02;
/** Neighbours of a run that are told apart at most. */
const mostBeside = 64;

/**
 * The requirements of functions: T = Solo · max(FBR_k + Σ FBR_i, 1) (equation 1). Each run beside others, contended for
 * bandwidth, is an equation that is solved for its function with the present requirements of its neighbours; the mean of the last
 * solutions is the function's. They are used only while they predict held-out runs better than a constant does.
 */
export class Bandwidths {
  private readonly solved = new Map<string, Solved>();
  private readonly slowdowns: number[];
  /** Logarithms of `slowdowns`. */
  private readonly logs: number[];
  private readonly heldOut: CoLocated[];
  private seen: number;
  /** Mean of the requirements in use; undefined: to be counted. */
  private mean: number | undefined;
  private isBetter = false;
  private constantNow = 1;
  /** Counts changes of what `of` answers. */
  revision = 0;

  constructor(state?: BandwidthState) {
    for (const [name, { solutions, value }] of state?.solved ?? []) {
      this.solved.set(name, { solutions: [...solutions], value });
    }
    this.slowdowns = [...(state?.slowdowns ?? [])];
    this.heldOut = [...(state?.heldOut ?? [])];
    this.seen = state?.seen ?? 0;
    this.logs = this.slowdowns.map(Math.log);
    this.countConstant();
    this.judge();
  }

  /** Whether equation 1 predicts held-out runs better than a constant does, so that requirements are used. */
  get isProven(): boolean {
    return this.isBetter;
  }

  /** The mean slowdown of runs beside others, at least 1: predicted of them while requirements are not used. */
  get constant(): number {
    return this.constantNow;
  }

  /** Requirement of a function, a fraction of the bandwidth ≥ 0; the mean of all where it was not measured. */
  of(name: string): number {
    return this.solved.get(name)?.value ?? (this.mean ??= this.meanValue());
  }

  /** Whether a function's own requirement is used: it was measured, and requirements predict better than a constant. */
  knows(name: string): boolean {
    return this.isBetter && this.solved.has(name);
  }

  /** Learns from a run that took `slowdown` times its time alone on the same place. Wrong slowdowns are ignored. */
  observe(name: string, beside: readonly BesidePart[], slowdown: number): void {
    if (!(slowdown >= leastSlowdown && slowdown <= mostSlowdown) || beside.length > mostBeside) return;
    this.seen += 1;
    if (this.seen % heldOutEvery === 0) {
      keepLast(this.heldOut, { name, beside: [...beside], slowdown }, mostHeldOut);
      // The runs in between change requirements little, and a comparison counts all held-out runs.
      this.judge();
    } else {
      keepLast(this.slowdowns, slowdown, mostLearned);
      keepLast(this.logs, Math.log(slowdown), mostLearned);
      this.countConstant();
      this.solve(name, beside, slowdown);
    }
  }

  forget(name: string): void {
    if (!this.solved.delete(name)) return;
    this.mean = undefined;
    this.judge();
    this.revision += 1;
  }

  state(): BandwidthState {
    return {
      solved: Array.from(this.solved, ([name, one]) => [name, { ...one }] as const),
      slowdowns: [...this.slowdowns],
      heldOut: [...this.heldOut],
      seen: this.seen,
    };
  }

  /** Solves equation 1 for a function. Functions without a requirement, this one included, get equal parts of what is left. */
  private solve(name: string, beside: readonly BesidePart[], slowdown: number): void {
    const own = this.solved.get(name);
    let known = 0;
    let unknown = 0;
    for (const one of beside) {
      const value = this.solved.get(one.name)?.value;
      if (value === undefined) unknown += one.part;
      else known += value * one.part;
    }
    let solution = (slowdown - known) / (1 + unknown);
    if (slowdown <= uncontended) {
      // Requirements that say nothing else are left alone; greater ones are too great.
      if (own === undefined || own.value + known <= 1) return;
      solution = 1 - known;
    }
    solution = Math.min(mostBandwidth, Math.max(0, solution));
    const solutions = own?.solutions ?? [];
    keepLast(solutions, solution, mostSolutions);
    const mean = meanOf(solutions);
    const isWorthwhile = own === undefined || Math.abs(mean - own.value) > worthwhile * Math.max(own.value, mean);
    if (isWorthwhile) this.revision += 1;
    if (isWorthwhile) this.mean = undefined;
    keepNewest(this.solved, name, { solutions, value: isWorthwhile ? mean : own.value }, mostFunctions);
  }

  private meanValue(): number {
    let sum = 0;
    for (const { value } of this.solved.values()) sum += value;
    return this.solved.size === 0 ? 0 : sum / this.solved.size;
  }

  private countConstant(): void {
    this.constantNow = this.logs.length === 0 ? 1 : Math.max(1, Math.exp(meanOf(this.logs)));
  }

  /** Compares the errors of equation 1 and of the constant on held-out runs: mean |log(predicted / measured)|. */
  private judge(): void {
    let [ofEquation, ofConstant] = [0, 0];
    for (const { name, beside, slowdown } of this.heldOut) {
      ofEquation += Math.abs(Math.log(this.slowdownOf(name, beside) / slowdown));
      ofConstant += Math.abs(Math.log(this.constantNow / slowdown));
    }
    this.isBetter = this.heldOut.length >= leastHeldOut && ofEquation < ofConstant;
  }

  /** Equation 1 over the time alone. */
  private slowdownOf(name: string, beside: readonly BesidePart[]): number {
    let sum = this.of(name);
    for (const one of beside) sum += this.of(one.name) * one.part;
    return Math.max(1, sum);
  }
}

/** Adds to the last values. */
export function keepLast<Value>(values: Value[], value: Value, most: number): void {
  values.push(value);
  if (values.length > most) values.shift();
}

/** The mean of values; NaN of none. */
export function meanOf(values: readonly number[]): number {
  return values.reduce((sum, one) => sum + one, 0) / values.length;
}
