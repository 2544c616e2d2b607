// What a platform can observe of a workload alone, as comparable numbers.
import type { Alone, MeasuredSet } from './sets.js';

/** Standardised features by workload, and their number; workloads of one source have the same features. */
export interface Features {
  /** Mean 0 and standard deviation 1 over the workloads of a source. */
  vectors: ReadonlyMap<string, Float64Array>;
  names: ReadonlyMap<string, readonly string[]>;
  /** Times alone at a share that a workload lacks and others of its source have: the source's mean stands for them. */
  filled: number;
}

/** Part of a source's workloads that must have been measured alone at a share for it to be a feature. */
const mostShares = 0.8;
const perSource = 2;

/**
 * Features of the workloads of one GPU: the figures that were measured alone, and the logarithm of the time alone at the
 * smallest and the middle share that most workloads of the source were measured at.
 */
export function featuresOf(alone: readonly Alone[], sets: readonly MeasuredSet[]): Features {
  const stretches = new Map<string, Map<number, number>>();
  for (const { members } of sets) {
    const [only] = members;
    if (only?.stretch === undefined || members.length > 1) continue;
    const points = stretches.get(only.workload) ?? new Map<number, number>();
    stretches.set(only.workload, points);
    points.set(only.share, only.stretch);
  }
  const vectors = new Map<string, Float64Array>();
  const names = new Map<string, readonly string[]>();
  let filled = 0;
  for (const source of new Set(alone.map((one) => one.source))) {
    const own = alone.filter((one) => one.source === source);
    const shares = sharesOf(own, stretches);
    const columns = new Map<string, (number | undefined)[]>();
    for (const name of Object.keys(own[0]?.features ?? {}))
      columns.set(
        name,
        own.map((one) => one.features[name]),
      );
    for (const share of shares) {
      const logs = own.map((one) => {
        const stretch = stretches.get(one.workload)?.get(share);
        return stretch === undefined ? undefined : Math.log(stretch);
      });
      columns.set(`logStretchAt${Math.round(100 * share)}`, logs);
    }
    names.set(source, [...columns.keys()]);
    const standard = [...columns.values()].map(standardised);
    filled += [...columns.values()].flat().filter((value) => value === undefined).length;
    own.forEach(({ workload }, at) =>
      vectors.set(
        workload,
        Float64Array.from(standard, (column) => column[at] as number),
      ),
    );
  }
  return { vectors, names, filled };
}

/** The smallest and the middle share that most workloads were measured at, the whole device left out. */
function sharesOf(own: readonly Alone[], stretches: ReadonlyMap<string, ReadonlyMap<number, number>>): number[] {
  const counts = new Map<number, number>();
  for (const { workload } of own)
    for (const share of stretches.get(workload)?.keys() ?? []) counts.set(share, (counts.get(share) ?? 0) + 1);
  const common = [...counts]
    .filter(([share, count]) => share < 1 && count >= mostShares * own.length)
    .map(([share]) => share)
    .sort((a, b) => a - b);
  const chosen = [common[0], common[common.length >> 1]].filter((share) => share !== undefined);
  return [...new Set(chosen)].slice(0, perSource);
}

function standardised(column: readonly (number | undefined)[]): number[] {
  const known = column.filter((value) => value !== undefined);
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const deviation = Math.sqrt(known.reduce((sum, value) => sum + (value - mean) ** 2, 0) / known.length);
  return column.map((value) => (value === undefined || deviation < 1e-9 ? 0 : (value - mean) / deviation));
}
