// What a newcomer would cost on every place: counted once, and again where a place has changed since.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- orders are those of the ledger's accounts */
import type { PlaceAccount } from '../../ledger/account.js';
import type { Ledger } from '../../ledger/ledger.js';
import type { WorkloadState } from '../../view/view.js';
import type { Effect, SetEffects } from './set-effects.js';

/** Weights of a cost, as in the settings of the placement. */
export interface CostWeights {
  trainWeight: number;
  perRequest: number;
}

/** The costs of one newcomer on all places, by their `order`. */
export interface CostColumns {
  /** λ·D_train + (1 − λ)·D_func + the cost of the instances that run there; NaN where workloads would suffer. */
  cost: Float64Array;
  /** D of the newcomer. */
  own: Float64Array;
}

interface Row extends CostColumns {
  /** The counts of places and lists that each figure was computed at. */
  at: Uint32Array;
}

/** Figures that are remembered, 20 bytes each; then all are forgotten. */
const mostFigures = 4_000_000;

/** The cost of what a newcomer does to a place of `busy` instances; NaN where workloads would suffer. */
export function costOf(
  { suffers, train, own, beyond }: Effect,
  busy: number,
  { trainWeight, perRequest }: CostWeights,
): number {
  return suffers || beyond > 0 ? NaN : trainWeight * train + (1 - trainWeight) * own + perRequest * busy;
}

/** Costs of newcomers on places. */
export class PlaceCosts {
  private rows: (Row | undefined)[] = [];
  private figures = 0;
  private generation = -1;
  private stamp = -1;
  private counts: Uint32Array | undefined;
  /** By order: the workloads of the place, and how often that list has changed. */
  private lists: (readonly WorkloadState[])[] = [];
  private changes = new Uint32Array(0);

  constructor(
    private readonly effects: SetEffects,
    private readonly weights: CostWeights,
  ) {}

  /** The costs of a newcomer, by its number, as of now. They hold until the next call. */
  of(newcomer: number, ledger: Ledger, accounts: readonly PlaceAccount[]): CostColumns {
    const { counts } = ledger.sums();
    this.follow(counts, accounts);
    const row = this.rows[newcomer] ?? this.newRow(newcomer, accounts.length);
    const { changes } = this;
    for (let order = 0; order < counts.length; order += 1) {
      const at = counts[order]! + changes[order]!;
      if (row.at[order] === at) continue;
      const account = accounts[order]!;
      const effect = this.effects.effectOn(account, newcomer);
      row.cost[order] = costOf(effect, account.busy, this.weights);
      row.own[order] = effect.own;
      row.at[order] = at;
    }
    return row;
  }

  /** Takes notice of nodes that came or went, of newer predictions and of workloads that stand otherwise. */
  private follow(counts: Uint32Array, accounts: readonly PlaceAccount[]): void {
    const { effects } = this;
    if (this.counts !== counts || this.generation !== effects.generation) {
      this.counts = counts;
      this.generation = effects.generation;
      this.stamp = -1;
      this.forget();
    }
    if (this.stamp === effects.stamp) return;
    this.stamp = effects.stamp;
    if (this.changes.length !== accounts.length) {
      this.changes = new Uint32Array(accounts.length);
      this.lists = [];
    }
    for (const account of accounts) {
      const list = effects.workloadsOn(account);
      if (this.lists[account.order] === list) continue;
      this.lists[account.order] = list;
      this.changes[account.order]! += 1;
    }
  }

  private newRow(newcomer: number, places: number): Row {
    if (this.figures + places > mostFigures) this.forget();
    this.figures += places;
    const row = { cost: new Float64Array(places), own: new Float64Array(places), at: new Uint32Array(places) };
    return (this.rows[newcomer] = row);
  }

  private forget(): void {
    this.rows = [];
    this.figures = 0;
  }
}
