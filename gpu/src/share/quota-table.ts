/* eslint-disable @typescript-eslint/no-non-null-assertion -- arrays have an element for each job of a set; places and matches are its indices */
import { kindName, type GpuKind } from '@gpuwhisk/common/gpu';
import type { SlowdownPredictor } from '../predict/slowdown-predictor.js';
import { guardrail } from './quotas.js';
import { NearestRows, ordered, rowKey, addMeasurement, bestOfOrders, bestWithin } from './quota-row.js';
import type { QuotaRow, RowPoint } from './quota-row.js';
import type { FixedShares, QuotaChoice, QuotaJob, Quotas } from './quotas.js';
import type { MeasuredPoint } from './surrogate.js';

/** Slowdowns outside of these are no measurements of work: a clock that jumped, a run that was not run. */
const leastSlowdown = 0.5;
const greatestSlowdown = 1000;

export interface QuotaTableOptions {
  /** The model of a type of GPU in one mode. */
  predictorOf(gpu: GpuKind): SlowdownPredictor;
  /** Rows that are kept; then the one that was not used for longest makes way. Default 4096. */
  maxRows?: number;
  /** A row is another than before, or is forgotten. `key` names its set and kind of GPU. */
  onChange?(key: string, row: QuotaRow | undefined): void;
}

interface Entry {
  row: QuotaRow;
  /** The count of uses when it was used last. */
  usedAt: number;
}

/**
 * Which shares sets of jobs do best with, as it was measured on each kind of GPU (FaaShare's configuration table,
 * section VII-B). Every measured point is kept, so that one table serves all budgets.
 */
export class QuotaTable implements Quotas {
  private readonly byKey = new Map<string, Entry>();
  /** Counts uses. */
  private uses = 0;
  private readonly nearest = new Map<string, NearestRows>();
  private readonly drivers = new Map<string, number>();
  private readonly maxRows: number;

  constructor(private readonly options: QuotaTableOptions) {
    this.maxRows = options.maxRows ?? 4096;
  }

  shareFor(
    set: readonly QuotaJob[],
    gpu: GpuKind,
    budgetsMs: readonly number[],
    fixed: FixedShares = [],
    leftMs: readonly number[] = [],
  ): QuotaChoice {
    const { key, ids, places } = ordered(set, gpu, budgetsMs);
    const entry = this.byKey.get(key);
    if (entry !== undefined) {
      entry.usedAt = this.uses += 1;
      const bounds = set.map((job, at) => maxSlowdown(job, budgetsMs[at]!));
      const hit = bestOfOrders(entry.row, { ids, places }, bounds, fixed, leftMs);
      if (hit !== undefined) {
        const { shares, slowdowns } = given(hit.point, hit.places);
        return { shares: shares.map((share) => share / 100), source: 'hit', slowdowns, unmet: [] };
      }
    }
    return (
      this.nearestFor(set, gpu, budgetsMs, fixed) ?? guardrail(set, budgetsMs, this.options.predictorOf(gpu), fixed)
    );
  }

  slowdownsAt(set: readonly QuotaJob[], gpu: GpuKind, shares: readonly number[], atLeast = 1): number[] | undefined {
    const { key, places } = ordered(
      set,
      gpu,
      shares.map((share) => -share),
    );
    const row = this.byKey.get(key)?.row;
    const point =
      row &&
      bestWithin(
        row,
        unbounded(set.length),
        places.map((place) => shares[place]),
      );
    return point && point.samples.length >= atLeast ? given(point, places).slowdowns : undefined;
  }

  /**
   * Keeps what was measured: `shares` in percent and slowdowns by job of the set. Gives why it is refused, or
   * undefined: numbers that cannot be, or a driver older than the newest that this type of GPU was seen with.
   */
  record(
    set: readonly QuotaJob[],
    gpu: GpuKind,
    { shares, slowdowns }: MeasuredPoint,
    driverMajor: number,
  ): string | undefined {
    if (set.length === 0 || shares.length !== set.length || slowdowns.length !== set.length) {
      return `${shares.length} shares and ${slowdowns.length} slowdowns for ${set.length} jobs`;
    }
    const share = shares.find((one) => !(one > 0 && one <= 100));
    if (share !== undefined) return `a share of ${share} %`;
    const slowdown = slowdowns.find((one) => !(one >= leastSlowdown && one <= greatestSlowdown));
    if (slowdown !== undefined) return `a slowdown of ${slowdown}`;
    const { gpuType, mode } = gpu;
    if (!this.sawDriver(gpuType, driverMajor)) return `measured with driver ${driverMajor}, which has been replaced`;
    const { key, ids, places } = ordered(
      set,
      gpu,
      shares.map((one) => -one),
    );
    let row = this.byKey.get(key)?.row;
    if (row === undefined) {
      const jobs = places.map((place, at) => {
        const { function: name, version, features } = set[place]!;
        return { id: ids[at]!, function: name, version, ...(features !== undefined && { features }) };
      });
      row = { gpuType, mode, driverMajor, jobs, points: [], searched: false };
      this.insert(key, row);
    }
    const inOrder = (values: readonly number[]): number[] => places.map((place) => values[place]!);
    addMeasurement(row, inOrder(shares), inOrder(slowdowns));
    this.options.onChange?.(key, row);
    return undefined;
  }

  /** What was measured of a set, in its order: what a search goes on from. */
  pointsOf(set: readonly QuotaJob[], gpu: GpuKind): MeasuredPoint[] {
    const { key, places } = ordered(set, gpu, new Array<number>(set.length).fill(0));
    return (this.byKey.get(key)?.row.points ?? []).map((point) => given(point, places));
  }

  /** Notes that a search for the set has nothing more to gain; of a set that was not measured nothing is noted. */
  markSearched(set: readonly QuotaJob[], gpu: GpuKind): void {
    const key = this.keyOf(set, gpu);
    const row = this.byKey.get(key)?.row;
    if (row === undefined) return;
    row.searched = true;
    this.options.onChange?.(key, row);
  }

  /** Whether a search for the set is worth while: none has ended. */
  wantsSearch(set: readonly QuotaJob[], gpu: GpuKind): boolean {
    return this.byKey.get(this.keyOf(set, gpu))?.row.searched !== true;
  }

  /**
   * A GPU of the type has a driver of this major version: what was measured with an earlier one is forgotten. False
   * where a later one is known already, as while the nodes of a cluster are upgraded one by one.
   */
  sawDriver(gpuType: string, major: number): boolean {
    const known = this.drivers.get(gpuType);
    if (known !== undefined && major < known) return false;
    if (known !== major) {
      this.drivers.set(gpuType, major);
      this.dropWhere((row) => row.gpuType === gpuType && row.driverMajor < major);
    }
    return true;
  }

  /** A function has a new version, or is gone (undefined): what was measured of others is forgotten. */
  sawVersion(name: string, version: string | undefined): void {
    this.dropWhere((row) => row.jobs.some((job) => job.function === name && job.version !== version));
  }

  /** Forgets a row; returns whether there was one. */
  forget(key: string): boolean {
    const row = this.byKey.get(key)?.row;
    if (row !== undefined) this.drop(key, row);
    return row !== undefined;
  }

  /** What is known, the row that was used last at the end. */
  rows(): QuotaRow[] {
    return [...this.byKey.values()].sort((one, other) => one.usedAt - other.usedAt).map(({ row }) => row);
  }

  /** Takes a row as `rows` gave it, in place of what is known of its set; one of a driver that was replaced is forgotten. */
  restore(row: QuotaRow): void {
    const key = rowKey(row);
    if (!this.sawDriver(row.gpuType, row.driverMajor)) {
      this.options.onChange?.(key, undefined);
      return;
    }
    const before = this.byKey.get(key);
    if (before !== undefined) this.remove(key, before.row);
    this.insert(key, row);
  }

  /** Restores a stored row; measurements of its set since then stay. */
  merge(row: QuotaRow): void {
    const key = rowKey(row);
    const since = this.byKey.get(key)?.row;
    if (since === undefined) {
      this.restore(row);
      return;
    }
    if (row.driverMajor !== since.driverMajor) return;
    for (const { shares, samples } of row.points) {
      const isKnown = since.points.some((point) => point.shares.every((share, at) => share === shares[at]));
      if (!isKnown) for (const slowdowns of samples) addMeasurement(since, shares, slowdowns);
    }
    since.searched ||= row.searched;
    this.options.onChange?.(key, since);
  }

  /** How many rows there are. */
  get size(): number {
    return this.byKey.size;
  }

  private nearestFor(
    set: readonly QuotaJob[],
    gpu: GpuKind,
    budgetsMs: readonly number[],
    fixed: FixedShares,
  ): QuotaChoice | undefined {
    const bounds = set.map((job, at) => maxSlowdown(job, budgetsMs[at]!));
    let shares: number[] = [];
    const near = this.nearest.get(kindName(gpu))?.find(
      set.map(({ features }) => features),
      ({ row, matched }) => {
        const theirs = new Array<number>(set.length);
        const theirFixed = new Array<number | undefined>(set.length);
        for (const [at, other] of matched.entries()) {
          theirs[other] = bounds[at]!;
          theirFixed[other] = fixed[at];
        }
        const point = bestWithin(row, theirs, theirFixed);
        if (point === undefined) return false;
        shares = Array.from(matched, (other) => point.shares[other]! / 100);
        return true;
      },
    );
    return near === undefined ? undefined : { shares, source: 'nearest', unmet: [] };
  }

  private keyOf(set: readonly QuotaJob[], gpu: GpuKind): string {
    return ordered(set, gpu, new Array<number>(set.length).fill(0)).key;
  }

  private insert(key: string, row: QuotaRow): void {
    this.byKey.set(key, { row, usedAt: (this.uses += 1) });
    const place = kindName(row);
    const index = this.nearest.get(place) ?? new NearestRows();
    this.nearest.set(place, index);
    index.add(row);
    if (this.byKey.size > this.maxRows) this.dropUnused();
  }

  private dropUnused(): void {
    let least = Infinity;
    let oldest: [string, QuotaRow] | undefined;
    for (const [key, { row, usedAt }] of this.byKey) {
      if (usedAt < least) [least, oldest] = [usedAt, [key, row]];
    }
    if (oldest !== undefined) this.drop(...oldest);
  }

  private dropWhere(isOver: (row: QuotaRow) => boolean): void {
    for (const [key, { row }] of this.byKey) if (isOver(row)) this.drop(key, row);
  }

  private drop(key: string, row: QuotaRow): void {
    this.remove(key, row);
    this.options.onChange?.(key, undefined);
  }

  private remove(key: string, row: QuotaRow): void {
    this.byKey.delete(key);
    this.nearest.get(kindName(row))?.delete(row);
  }
}

function unbounded(size: number): number[] {
  return new Array<number>(size).fill(Infinity);
}

/** How much slower than alone a budget lets a job be: not at all known without its time alone. */
function maxSlowdown({ soloMs }: QuotaJob, budgetMs: number): number {
  if (budgetMs === Infinity) return Infinity;
  return soloMs !== undefined && soloMs > 0 ? budgetMs / soloMs : 0;
}

/** A row's point in the order of the set that was asked for. */
function given({ shares, slowdowns }: RowPoint, places: readonly number[]): { shares: number[]; slowdowns: number[] } {
  const back = (values: readonly number[]): number[] => {
    const turned = new Array<number>(values.length);
    for (const [at, place] of places.entries()) turned[place] = values[at]!;
    return turned;
  };
  return { shares: back(shares), slowdowns: back(slowdowns) };
}
