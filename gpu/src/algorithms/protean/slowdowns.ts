// PROTEAN's model of slowdown on GPUs and slices (paper, section 3, equations 1 and 2), learned from runs.
import { keepNewest } from '@gpuwhisk/common/collections';
import type { GpuKind } from '@gpuwhisk/common/gpu';
import { Bandwidths, keepLast, meanOf } from './bandwidths.js';
import type { BandwidthState } from './bandwidths.js';

/** A run that has ended, as the model learns from it. Times in ms. */
export interface TimedRun {
  task: {
    /** `/namespace/action`, and its version. */
    function: string;
    version: string;
    /** When it was requested: runs of an earlier version may end later. */
    arrivedAt: number;
  };
  gpu: GpuKind;
  /** Without a start. */
  ranMs: number;
  /** Its neighbours, each with the part of the run in which it was there. */
  beside: readonly { task: { function: string }; part: number }[];
}

/** What is known of a function beside its runs. */
export interface TaskFigures {
  function: string;
  /** Time alone on a whole GPU, ms; absent or not above 0: not known. */
  soloMs?: number;
  /** Use of a whole GPU's SMs, fraction 0–1; absent: it uses all of them. */
  features?: { smUtil: number };
}

/** Times of a function alone on a kind of place, ms. */
interface AloneOn {
  /** The last ones, and their mean. */
  times: number[];
  meanMs: number;
  /** As `computePart`. */
  part: number;
}

interface Known {
  version: string;
  arrivedAt: number;
  /** Times alone by kind of place. */
  alone: Map<string, AloneOn>;
  /** Smoothed time of warm runs as they were served, ms. */
  servedMs: number;
}

/** Times of a task alone on kinds of places. */
export interface AloneTimes {
  times: number[];
  /** They are in ms; else relative to a whole GPU. */
  isTimed: boolean;
}

/** Of the state. */
const format = 1;

/** The model's state as plain data. */
export interface SliceSlowdownsState {
  format: typeof format;
  functions: (readonly [string, Omit<Known, 'alone'> & { alone: (readonly [string, readonly number[]])[] }])[];
  families: (readonly [string, BandwidthState])[];
}

/** Functions that are kept; beyond that the one goes whose last run is the oldest. */
const mostFunctions = 1000;
/** Kinds of places that are told apart: per function, and GPUs of one type in one mode in all. */
const [mostKinds, mostFamilies] = [16, 64];
/** Times alone that are kept of a function on a kind of place. */
const mostTimes = 8;
/** Weight of the newest run in the smoothed time. */
const newest = 0.2;
/** A run with fewer neighbours on average ran alone. */
const leastBeside = 0.05;
/** Longer than any run may take, ms. */
const mostMs = 7 * 24 * 3_600_000;

/** Functions share bandwidth on all slices of one type of GPU: the type without the profile, and the mode. */
function familyOf({ gpuType, mode }: GpuKind): string {
  const at = gpuType.indexOf(':');
  return `${at < 0 ? gpuType : gpuType.slice(0, at)} ${mode}`;
}

/** The name of a kind in stored states. */
const keyOf = ({ gpuType, mode }: GpuKind): string => `${gpuType} ${mode}`;

/** A kind of place with what is worked out of it once. */
export interface KnownKind extends GpuKind {
  key: string;
  /** As `familyOf`. */
  family: string;
  /** As `computePart`. */
  part: number;
}

/** A kind of place, for `aloneOn`. */
export function knownKind(kind: GpuKind): KnownKind {
  return { ...kind, key: keyOf(kind), family: familyOf(kind), part: computePart(kind.gpuType) };
}

/** The part of a GPU's compute that a kind of place has: n/7 of a slice whose profile begins with `ng`, else 1. */
export function computePart(gpuType: string): number {
  const [, slices] = /:([1-7])g\./.exec(gpuType) ?? [];
  return slices === undefined ? 1 : Number(slices) / 7;
}

/**
 * Slowdowns of functions on GPUs and slices: η = RDF · max(FBR_k + Σ FBR_i, 1) (paper, equation 2). RDF, the deficiency
 * factor, is the time alone on a slice over that on the whole GPU; FBR, the fractional bandwidth requirement, is learned as
 * `Bandwidths` does. Pure: no clock, no I/O. Its size is bounded.
 */
export class SliceSlowdowns {
  private functions = new Map<string, Known>();
  private families = new Map<string, Bandwidths>();
  private changes = 0;
  private learnedNow = 0;

  /** `onChange` is called after each run that was learned from. */
  constructor(private readonly onChange: () => void = () => undefined) {}

  /** Counts all that was learned and forgotten: each answer holds while it stays. */
  get learned(): number {
    return this.learnedNow;
  }

  /** Counts changes of the requirements that `bandwidthsOn` gives: sums of them hold while it stays. */
  get revision(): number {
    let sum = this.changes;
    for (const one of this.families.values()) sum += one.revision;
    return sum;
  }

  /** Learns from a warm run of one GPU. Times that are no times are ignored. */
  ran({ task, gpu, ranMs, beside }: TimedRun): void {
    if (!(ranMs > 0 && ranMs <= mostMs)) return;
    this.learnedNow += 1;
    const known = this.noted(task);
    if (known === undefined) return;
    known.servedMs = known.servedMs > 0 ? known.servedMs + newest * (ranMs - known.servedMs) : ranMs;
    const parts = beside.reduce((sum, { part }) => sum + part, 0);
    const kind = keyOf(gpu);
    const alone = known.alone.get(kind);
    if (parts < leastBeside) {
      if (alone === undefined) {
        if (known.alone.size < mostKinds) known.alone.set(kind, aloneOn(kind, [ranMs]));
      } else {
        keepLast(alone.times, ranMs, mostTimes);
        alone.meanMs = meanOf(alone.times);
      }
    } else if (alone !== undefined && Number.isFinite(parts)) {
      const others = beside.map((one) => ({ name: one.task.function, part: one.part }));
      this.familyAt(gpu)?.observe(task.function, others, ranMs / alone.meanMs);
    }
    this.onChange();
  }

  /** The bandwidths on GPUs of this type and mode, whatever they are cut into; undefined: none was learned. */
  bandwidthsOn(kind: GpuKind): Bandwidths | undefined {
    return this.families.get(familyOf(kind));
  }

  /** The same, of a kind that is known. */
  bandwidthsOf({ family }: KnownKind): Bandwidths | undefined {
    return this.families.get(family);
  }

  /**
   * Times of a task alone on each of `kinds`, in their order: as measured; where that is missing from the largest kind of place
   * with a measured time, or else from `soloMs`, by the parts of the SMs that are there. In ms if any of these is known
   * (`isTimed`), else in units of the time on a whole GPU.
   */
  aloneOn({ function: name, soloMs, features }: TaskFigures, kinds: readonly KnownKind[]): AloneTimes {
    const alone = this.functions.get(name)?.alone;
    const fill = features?.smUtil ?? 1;
    let reference: { part: number; meanMs: number } | undefined;
    for (const one of alone?.values() ?? []) {
      if (reference === undefined || one.part > reference.part) reference = one;
    }
    if (reference === undefined && soloMs !== undefined && soloMs > 0 && Number.isFinite(soloMs)) {
      reference = { part: 1, meanMs: soloMs };
    }
    const whole = reference === undefined ? 1 : reference.meanMs / deficiency(fill, reference.part);
    const times: number[] = [];
    for (const { key, part } of kinds) times.push(alone?.get(key)?.meanMs ?? whole * deficiency(fill, part));
    return { times, isTimed: reference !== undefined };
  }

  /** What a run of a task is expected to take from its start, ms: as its last warm ones were served, else its time alone. */
  expectedMs({ function: name, soloMs }: TaskFigures): number | undefined {
    const servedMs = this.functions.get(name)?.servedMs ?? 0;
    if (servedMs > 0) return servedMs;
    return soloMs !== undefined && soloMs > 0 && Number.isFinite(soloMs) ? soloMs : undefined;
  }

  /** Forgets a function, `/namespace/action`. Returns whether anything was known of it. */
  forget(name: string): boolean {
    this.learnedNow += 1;
    const isKnown = this.functions.delete(name);
    for (const one of this.families.values()) one.forget(name);
    if (isKnown) this.changed();
    return isKnown;
  }

  /** Forgets all bandwidths on GPUs of a type in a mode. Returns whether there were any. */
  forgetFamily(kind: GpuKind): boolean {
    this.learnedNow += 1;
    const isKnown = this.families.delete(familyOf(kind));
    if (isKnown) this.changed();
    return isKnown;
  }

  /** All that was learned, as plain data. */
  state(): SliceSlowdownsState {
    return {
      format,
      functions: Array.from(this.functions, ([name, known]) => {
        const alone = Array.from(known.alone, ([kind, { times }]) => [kind, times] as const);
        return [name, { ...known, alone }] as const;
      }),
      families: Array.from(this.families, ([name, one]) => [name, one.state()] as const),
    };
  }

  /** Takes what `state` gave. Throws RangeError for a state of another format. */
  restore({ format: given, functions, families }: SliceSlowdownsState): void {
    if (given !== format)
      throw new RangeError(`the format of slowdowns on slices is ${String(given)} instead of ${format}`);
    const entries = functions.slice(-mostFunctions).map(([name, known]): [string, Known] => {
      const alone = known.alone.map(([kind, times]): [string, AloneOn] => [kind, aloneOn(kind, [...times])]);
      return [name, { ...known, alone: new Map(alone) }];
    });
    this.functions = new Map(entries);
    this.families = new Map(families.map(([name, state]) => [name, new Bandwidths(state)]));
    this.changes += 1;
    this.learnedNow += 1;
  }

  private changed(): void {
    this.changes += 1;
    this.onChange();
  }

  /** The function of a run, with the version that was requested last; undefined for a run of an earlier one. */
  private noted({ function: name, version, arrivedAt }: TimedRun['task']): Known | undefined {
    const known = this.functions.get(name);
    if (known !== undefined && known.version !== version) {
      if (arrivedAt < known.arrivedAt) return undefined;
      this.forget(name);
    }
    const now = this.functions.get(name) ?? { version, arrivedAt, alone: new Map<string, AloneOn>(), servedMs: 0 };
    now.arrivedAt = Math.max(now.arrivedAt, arrivedAt);
    keepNewest(this.functions, name, now, mostFunctions, (oldest) => this.forget(oldest));
    return now;
  }

  private familyAt(kind: GpuKind): Bandwidths | undefined {
    const name = familyOf(kind);
    const found = this.families.get(name);
    if (found !== undefined || this.families.size >= mostFamilies) return found;
    const made = new Bandwidths();
    this.families.set(name, made);
    return made;
  }
}

function aloneOn(kind: string, times: number[]): AloneOn {
  return { times, meanMs: meanOf(times), part: computePart(kind) };
}

/** The deficiency factor of a part of the compute for a function that fills `fill` of a GPU, before it was measured. */
function deficiency(fill: number, part: number): number {
  return Math.max(1, fill / part);
}
