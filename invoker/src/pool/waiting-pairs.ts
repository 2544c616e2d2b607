import type { Container } from '../containers/container-factory.js';
import type { ContainerWatch } from './container-watch.js';
import type { MemoryBudget } from './memory-budget.js';
import type { Removals } from './removals.js';

/** What everybody who keeps containers needs. */
export interface Keeping {
  readonly memory: MemoryBudget;
  readonly removals: Removals;
  readonly watch: ContainerWatch;
}

/** Containers that wait for an action yet to come. */
export interface WaitingPairs {
  /** The containers at hand. */
  list(): Container[];
  has(container: Container): boolean;
  /** Destroys one that is out of order, and replaces it where it would be missed. */
  replace(container: Container): void;
}
