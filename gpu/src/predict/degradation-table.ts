// Degradations of pairs by the names of their models, computed ahead.
import { degradationBases, type DegradationBasis, type Member } from './degradation-predictor.js';

/** D of every victim beside every neighbour: 9 bytes a pair. */
export class DegradationTable {
  private constructor(
    private readonly victims: ReadonlyMap<string, number>,
    private readonly neighbours: ReadonlyMap<string, number>,
    private readonly values: Float64Array,
    private readonly sources: Uint8Array,
  ) {}

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
    const index = (members: readonly Member[]): Map<string, number> =>
      new Map(members.map(({ model }, at) => [model, at]));
    return new DegradationTable(index(victims), index(neighbours), values, sources);
  }

  /** D and its basis, or undefined if a model is unknown. */
  find(victim: string, neighbour: string): { degradation: number; basis: DegradationBasis } | undefined {
    const row = this.victims.get(victim);
    const column = this.neighbours.get(neighbour);
    if (row === undefined || column === undefined) return undefined;
    const at = row * this.neighbours.size + column;
    return { degradation: this.values[at] ?? 0, basis: degradationBases[this.sources[at] ?? 0] ?? 'default' };
  }
}
