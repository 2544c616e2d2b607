// Queue order by the use of the GPU for each unit of interference (SMORE, thesis equation 3.8).
import type { Task } from '../view/view.js';

/** Keeps the quotient finite (ε of equation 3.8). */
const smallest = 1e-5;
/** Use that is assumed of a function without figures, fraction of the SMs. */
const unknownUse = 0.5;
/** Weight of the newest run in a function's mean degradation. */
const newest = 0.1;
/** Functions that are remembered; beyond that the one whose last run is oldest is forgotten. */
const maxFunctions = 10_000;

/** By function, the mean degradation of its runs beside others. */
export type SavedInterference = readonly (readonly [string, number])[];

/** P(f) = E[U(f)] / (E[ΔLat(f)] + ε): the expected use of the SMs over the expected degradation of the function's runs. */
export class InterferencePriority {
  private means = new Map<string, number>();

  /** The priority of a task: the highest goes first. A function that has not run beside others yet is taken not to suffer. */
  of({ function: name, features }: Pick<Task, 'function' | 'features'>): number {
    return (features?.smUtil ?? unknownUse) / ((this.means.get(name) ?? 0) + smallest);
  }

  /** A run of a function beside others got slower by `degradation` (D). */
  observe(name: string, degradation: number): void {
    if (!Number.isFinite(degradation)) return;
    const now = Math.max(0, degradation);
    const known = this.means.get(name);
    this.means.delete(name);
    this.means.set(name, known === undefined ? now : known + newest * (now - known));
    const [oldest] = this.means.keys();
    if (this.means.size > maxFunctions && oldest !== undefined) this.means.delete(oldest);
  }

  /** The state, for `restore`. */
  saved(): SavedInterference {
    return [...this.means];
  }

  /** Takes the state of another one. */
  restore(means: SavedInterference): void {
    this.means = new Map(means);
  }
}
