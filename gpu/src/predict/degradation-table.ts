// Degradations of pairs by the names of their models, computed ahead.
/* eslint-disable @typescript-eslint/no-non-null-assertion -- indices are those of `victims`, `neighbours` and of the arrays over both */
import { degradationBases, type DegradationBasis, type Member } from './degradation-predictor.js';

/** D of every victim beside every neighbour: 9 bytes a pair. */
export class DegradationTable {
  private readonly rows: ReadonlyMap<string, number>;
  private readonly columns: ReadonlyMap<string, number>;

  private constructor(
    private readonly victims: readonly Member[],
    private readonly neighbours: readonly Member[],
    private readonly values: Float64Array,
    private readonly sources: Uint8Array,
  ) {
    this.rows = new Map(victims.map(({ model }, at) => [model, at]));
    this.columns = new Map(neighbours.map(({ model }, at) => [model, at]));
  }

  /** Asks `predict` for every pair. The models of `victims` are distinct, and so are those of `neighbours`. */
  static of(
    victims: readonly Member[],
    neighbours: readonly Member[],
    predict: (victim: Member, neighbour: Member) => { degradation: number; basis: DegradationBasis },
  ): DegradationTable {
    const size = victims.length * neighbours.length;
    const values = new Float64Array(size);
    const sources = new Uint8Array(size);
    victims.forEach((victim, row) => {
      neighbours.forEach((neighbour, column) => {
        const { degradation, basis } = predict(victim, neighbour);
        values[row * neighbours.length + column] = degradation;
        sources[row * neighbours.length + column] = degradationBases.indexOf(basis);
      });
    });
    return new DegradationTable(victims, neighbours, values, sources);
  }

  /** D and its basis, or undefined if a model is unknown or has other features now. */
  find(victim: Member, neighbour: Member): { degradation: number; basis: DegradationBasis } | undefined {
    const row = this.rows.get(victim.model);
    const column = this.columns.get(neighbour.model);
    if (row === undefined || column === undefined) return undefined;
    if (!isAsKnown(this.victims[row]!, victim) || !isAsKnown(this.neighbours[column]!, neighbour)) return undefined;
    const at = row * this.neighbours.length + column;
    return { degradation: this.values[at]!, basis: degradationBases[this.sources[at]!]! };
  }
}

/** Whether the name says all, or the features are still those that the pair was computed with. */
function isAsKnown(known: Member, asked: Member): boolean {
  return asked.features === undefined || haveSameFeatures(known, asked);
}

/** Whether two members have the same features, as pairs of the same models do. */
export function haveSameFeatures(one: Pick<Member, 'features'>, other: Pick<Member, 'features'>): boolean {
  const { features: before } = one;
  const { features: now } = other;
  if (before === now) return true;
  if (before === undefined || now === undefined) return false;
  const names = Object.keys(before);
  return names.length === Object.keys(now).length && names.every((name) => before[name] === now[name]);
}
