/** Runs of each size of batch that count. */
const keptRuns = 16;

/** Adds what was seen last; what was seen before the last 16 goes. */
export function keep<Value>(values: Value[], value: Value): void {
  values.push(value);
  if (values.length > keptRuns) values.shift();
}

/** What an earlier life has kept, and then this one: the last 16. */
export function keptOfBoth<Value>(earlier: readonly Value[], since: readonly Value[]): Value[] {
  return [...earlier, ...since].slice(-keptRuns);
}

/** The greater one of two in the middle; undefined of nothing. */
export function median(values: readonly number[]): number | undefined {
  return values.toSorted((one, other) => one - other)[values.length >> 1];
}
