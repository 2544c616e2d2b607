// Detection of pairs whose measured degradation departs from the predicted one.
import type { PairDrift } from './degradation-predictor.js';
import type { WeightGroup } from './degradation-weights.js';

/** Observations that a pair is judged by. */
const windowSize = 20;
/** A measured D further than this from the predicted one departs. */
const threshold = 0.05;
/** Departures in one direction within the window from which on the pair drifts. */
const tolerated = 10;
/** Observations without departure in a row after which it no longer does. */
const clearedAfter = 20;

/** A pair as the windows know it. */
interface Window {
  group: WeightGroup;
  victim: string;
  neighbour: string;
  /** Measured less predicted D of the last observations, oldest first. */
  excesses: number[];
  /** Measured D of the same observations. */
  measured: number[];
  direction?: PairDrift['direction'];
  /** Observations in a row without departure. */
  good: number;
}

/** A term of an observation: a pair, and its share of the predicted D (weight · pair). */
export interface ObservedTerm {
  group: WeightGroup;
  victim: string;
  neighbour: string;
  contribution: number;
}

/** Windows as plain data, least recently observed first. */
export interface DriftsState {
  version: 1;
  windows: readonly (WeightGroup & {
    models: readonly [string, string];
    excesses: readonly number[];
    /** Absent in states of before measurements were kept. */
    measured?: readonly number[];
    good: number;
    direction?: PairDrift['direction'];
  })[];
}

/**
 * Judges pairs by their last 20 observations: ten that exceed the prediction by more than 0.05 (or fall short of it) make
 * a pair drift, 20 good ones in a row clear it (policies.md, section 4). An observation with several neighbours that departs is
 * charged to those whose predicted contribution is at least the average, and tells nothing of the others; one that does not
 * depart is good for all. At most `most` pairs are known: the least recently observed are forgotten.
 */
export class PairDrifts {
  private readonly windows = new Map<string, Window>();

  /** Throws RangeError for a state of another version. */
  constructor(
    private readonly most: number,
    state?: DriftsState,
  ) {
    if (state === undefined) return;
    if ((state.version as number) !== 1) {
      throw new RangeError(`Drifts of version ${String(state.version)} cannot be read: version 1 was expected.`);
    }
    for (const { models, excesses, measured = [], good, direction, ...group } of state.windows.slice(-this.most)) {
      const [victim, neighbour] = models;
      const isWhole = measured.length === excesses.length && [...excesses, ...measured].every(Number.isFinite);
      this.windows.set(nameOf({ group, victim, neighbour }), {
        group,
        victim,
        neighbour,
        excesses: isWhole ? excesses.slice(-windowSize) : [],
        measured: isWhole ? measured.slice(-windowSize) : [],
        good,
        ...(direction !== undefined && { direction }),
      });
    }
  }

  /** Takes the observation of one member: its terms, and its predicted and measured D. */
  observe(terms: readonly ObservedTerm[], predicted: number, measured: number): void {
    const excess = measured - predicted;
    const departs = Math.abs(excess) > threshold;
    const mean = terms.reduce((sum, { contribution }) => sum + contribution, 0) / terms.length;
    for (const term of terms) {
      // Rounding must not acquit all of equal neighbours.
      if (departs && term.contribution < mean * (1 - 1e-9)) continue;
      const name = nameOf(term);
      const known = this.windows.get(name);
      const { group, victim, neighbour } = term;
      const window = known ?? { group, victim, neighbour, excesses: [], measured: [], good: 0 };
      judge(window, { excess, measured }, departs);
      this.windows.delete(name);
      this.windows.set(name, window);
    }
    for (const name of this.windows.keys()) {
      if (this.windows.size <= this.most) break;
      this.windows.delete(name);
    }
  }

  /** Pairs that drift, the largest mean excess first. */
  list(): PairDrift[] {
    const drifting = [...this.windows.values()].flatMap((window): PairDrift[] => {
      const { group, victim, neighbour, excesses, measured, direction } = window;
      const meanExcess = mean(excesses);
      if (direction === undefined) return [];
      return [
        {
          gpuType: group.gpuType,
          mode: group.mode,
          victimKind: group.victim,
          neighbourKind: group.neighbour,
          victim,
          neighbour,
          direction,
          departed: departures(excesses, direction),
          observed: excesses.length,
          meanExcess,
          meanPredicted: mean(measured) - meanExcess,
          meanMeasured: mean(measured),
        },
      ];
    });
    return drifting.sort((one, other) => Math.abs(other.meanExcess) - Math.abs(one.meanExcess));
  }

  /** Forgets the windows of a kind of pair. */
  forgetGroup({ gpuType, mode, victim, neighbour }: WeightGroup): void {
    for (const [name, { group }] of this.windows) {
      const isOfPlace = group.gpuType === gpuType && group.mode === mode;
      if (isOfPlace && group.victim === victim && group.neighbour === neighbour) this.windows.delete(name);
    }
  }

  /** The windows as plain data. */
  state(): DriftsState {
    return {
      version: 1,
      windows: [...this.windows.values()].map(({ group, victim, neighbour, excesses, measured, good, direction }) => ({
        ...group,
        models: [victim, neighbour] as const,
        excesses: [...excesses],
        measured: [...measured],
        good,
        ...(direction !== undefined && { direction }),
      })),
    };
  }
}

function judge(window: Window, seen: { excess: number; measured: number }, departs: boolean): void {
  window.excesses.push(seen.excess);
  window.measured.push(seen.measured);
  if (window.excesses.length > windowSize) {
    window.excesses.shift();
    window.measured.shift();
  }
  window.good = departs ? 0 : window.good + 1;
  if (window.good >= clearedAfter) delete window.direction;
  if (departures(window.excesses, 'worse') >= tolerated) window.direction = 'worse';
  else if (departures(window.excesses, 'better') >= tolerated) window.direction = 'better';
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function departures(excesses: readonly number[], direction: PairDrift['direction']): number {
  return excesses.filter((excess) => (direction === 'worse' ? excess > threshold : excess < -threshold)).length;
}

const nameOf = ({ group, victim, neighbour }: Pick<ObservedTerm, 'group' | 'victim' | 'neighbour'>): string =>
  JSON.stringify([group.gpuType, group.mode, group.victim, group.neighbour, victim, neighbour]);
