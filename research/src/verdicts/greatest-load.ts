// The greatest load at which a policy keeps its SLOs.

/** The part of the requests with an SLO that may be late. */
export const mostLate = 0.05;

/** Loads to look among, over the capacity of `mps-equal`, and how often the interval is halved. */
const [leastLoad, greatestTried, halvings] = [0.1, 2, 5];

/**
 * The greatest load of those tried at which at most `mostLate` are late, by bisection; 0 where even the least is too much. `lateAt`
 * is taken to rise with the load.
 */
export function greatestLoad(lateAt: (load: number) => number): number {
  if (lateAt(leastLoad) > mostLate) return 0;
  if (lateAt(greatestTried) <= mostLate) return greatestTried;
  let [kept, missed] = [leastLoad, greatestTried];
  for (let step = 0; step < halvings; step += 1) {
    const middle = (kept + missed) / 2;
    if (lateAt(middle) <= mostLate) kept = middle;
    else missed = middle;
  }
  return kept;
}
