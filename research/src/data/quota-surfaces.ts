/* eslint-disable @typescript-eslint/no-non-null-assertion -- shares have an entry a curve, and indices are below the lengths of the arrays. */
import { randomFraction } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import type { ShareCurve } from '@gpuwhisk/gpu/share/priors';
import { BenchDataError, readTable } from '@gpuwhisk/bench/data/csv';
import { randomItem } from '@gpuwhisk/bench/statistics';

/** Slowdowns of a model at each share with one batch size. */
export interface Surface extends ShareCurve {
  model: string;
  batch: number;
}

/** Tesla V100, the whole time slice: the models of RaPP, in 5 % steps. */
export async function rappSurfaces(): Promise<Surface[]> {
  const columns = {
    model: 'text',
    batch: 'number',
    sm_pct: 'number',
    quota_pct: 'number',
    latency_ms: 'number',
  } as const;
  const rows = await readTable('surfaces/rapp_v100_batch_sm_quota.csv', columns);
  return surfaces(
    rows
      .filter((row) => row.quota_pct === 100)
      .map(({ model, batch, sm_pct, latency_ms }) => ({ model, batch, share: sm_pct, ms: latency_ms })),
  );
}

/** Tesla V100: the four models of iGniter, at seven shares. */
export async function igniterSurfaces(): Promise<Surface[]> {
  const columns = { model: 'text', batch: 'number', partition_pct: 'number', latency_ms: 'number' } as const;
  const rows = await readTable('surfaces/igniter_v100_gpulet_solo.csv', columns);
  return surfaces(
    rows.map(({ model, batch, partition_pct, latency_ms }) => ({ model, batch, share: partition_pct, ms: latency_ms })),
  );
}

/** One surface for each model and batch that was measured at the most shares. */
export function surfaces(rows: readonly { model: string; batch: number; share: number; ms: number }[]): Surface[] {
  const groups = new Map<string, { model: string; batch: number; ms: Map<number, number> }>();
  for (const { model, batch, share, ms } of rows) {
    const key = `${model} ${batch}`;
    const group = groups.get(key) ?? { model, batch, ms: new Map<number, number>() };
    groups.set(key, group);
    group.ms.set(share, ms);
  }
  const most = Math.max(0, ...Array.from(groups.values(), ({ ms }) => ms.size));
  const found: Surface[] = [];
  for (const { model, batch, ms } of groups.values()) {
    const solo = ms.get(100);
    if (solo === undefined || ms.size < most) continue;
    const points = [...ms].sort(([one], [other]) => one - other);
    const [shares, slowdowns] = [points.map(([share]) => share), points.map(([, shareMs]) => shareMs / solo)];
    found.push({ model, batch, shares, slowdowns });
  }
  return found;
}

/** Splits models into `count` parts by chance. */
export function folds(models: readonly string[], count: number, random: Random): string[][] {
  const shuffled = [...models];
  for (let at = shuffled.length - 1; at > 0; at -= 1) {
    const other = Math.floor(randomFraction(random) * (at + 1));
    [shuffled[at], shuffled[other]] = [shuffled[other]!, shuffled[at]!];
  }
  return Array.from({ length: count }, (_, part) => shuffled.filter((_, at) => at % count === part));
}

/** `size` surfaces of different models. Throws BenchDataError for fewer models than that. */
export function drawSet(from: readonly Surface[], size: number, random: Random): Surface[] {
  const models = new Set(from.map(({ model }) => model)).size;
  if (models < size) throw new BenchDataError(`Sets of ${size} jobs need ${size} models, and ${models} are there.`);
  const set: Surface[] = [];
  while (set.length < size) {
    const one = randomItem(from, random);
    if (set.every(({ model }) => model !== one.model)) set.push(one);
  }
  return set;
}

/** The slowdown at a measured share. Throws RangeError for another share. */
export function slowdownAt({ shares, slowdowns }: ShareCurve, share: number): number {
  const slowdown = slowdowns[shares.indexOf(share)];
  if (slowdown === undefined) throw new RangeError(`nothing was measured at ${share} %`);
  return slowdown;
}

/** The sum of slowdowns that a set has with `shares`. */
export function sumAt(set: readonly ShareCurve[], shares: readonly number[]): number {
  return set.reduce((sum, curve, at) => sum + slowdownAt(curve, shares[at]!), 0);
}

/**
 * The least sum of slowdowns with shares of 100 % in all. Dynamic programming over the jobs: the best result of the
 * first jobs for each total.
 */
export function leastSum(set: readonly ShareCurve[], allowed: readonly number[]): number {
  let best = new Float64Array(101);
  for (const curve of set) {
    const next = new Float64Array(101).fill(Infinity);
    for (const share of allowed) {
      const slowdown = slowdownAt(curve, share);
      for (let total = share; total <= 100; total += 1) {
        next[total] = Math.min(next[total]!, best[total - share]! + slowdown);
      }
    }
    best = next;
  }
  return best[100]!;
}
