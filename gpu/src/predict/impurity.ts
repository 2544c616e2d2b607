import { RunningMedian } from './running-median.js';

/** What a tree minimises: the sum of absolute distances to the median, or of squared ones to the mean. */
export type Criterion = 'mae' | 'mse';

/** How badly one value stands for many. */
export interface Impurity {
  /** Forgets all values. */
  reset(): void;
  push(target: number): void;
  /** Sum of the distances (`mae`) or their squares (`mse`) of the values pushed. */
  loss(): number;
  /** The value with the least loss: median or mean. */
  centre(): number;
}

/** An empty one for at most `capacity` values. */
export function newImpurity(criterion: Criterion, capacity: number): Impurity {
  return criterion === 'mae' ? absolute(capacity) : squared();
}

function absolute(capacity: number): Impurity {
  const values = new RunningMedian(capacity);
  return {
    reset: () => values.reset(),
    push: (target) => values.push(target),
    loss: () => values.deviation(),
    centre: () => values.median(),
  };
}

/** Welford's running variance: no cancellation where values are large and close to each other. */
function squared(): Impurity {
  let count = 0;
  let mean = 0;
  let loss = 0;
  return {
    reset() {
      count = 0;
      mean = 0;
      loss = 0;
    },
    push(target) {
      count += 1;
      const off = target - mean;
      mean += off / count;
      loss += off * (target - mean);
    },
    loss: () => loss,
    centre: () => (count === 0 ? NaN : mean),
  };
}
