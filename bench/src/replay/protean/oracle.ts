// PROTEAN's oracle (section 6.2): its rules with true slowdowns, and for each period the geometry that turned out best.
import type { Batch } from './arrivals.js';
import { compliance, latencies, quantiles } from './metrics.js';
import { serve, type Cluster, type Scheme, type Served, type Slice } from './serving.js';
import { profileAt, type World } from './world.js';

/** Geometries that are swept. */
const geometries: readonly (readonly string[])[] = [
  ['7g.40gb'],
  ['4g.20gb', '3g.20gb'],
  ['3g.20gb', '3g.20gb'],
  ['4g.20gb', '2g.10gb', '1g.5gb'],
];
const bestEffortRules = ['packed', 'spread'] as const;

/** Periods between which the oracle may change everything: those in which best effort keeps its model (section 5). */
export const periodMs = 20_000;

/**
 * Strict batches first, each on the slice where it is slowed down least; best effort by first fit on the smallest slices (`packed`),
 * or where it is slowed down least itself (`spread`).
 */
export function trueSlowdowns(geometry: readonly string[], rule: (typeof bestEffortRules)[number]): Scheme {
  const waiting: { strict: Batch[]; rest: Batch[] } = { strict: [], rest: [] };
  const start = (
    queue: Batch[],
    pick: (batch: Batch, cluster: Cluster) => Slice | undefined,
    cluster: Cluster,
  ): Batch[] =>
    queue.filter((batch) => {
      const slice = pick(batch, cluster);
      if (slice !== undefined) cluster.start(batch, slice);
      return slice === undefined;
    });
  return {
    geometry,
    arrived: (batch) => (batch.isStrict ? waiting.strict : waiting.rest).push(batch),
    dispatch(cluster) {
      waiting.strict = start(waiting.strict, leastSlowed, cluster);
      waiting.rest = start(waiting.rest, rule === 'packed' ? smallestFirst : leastSlowed, cluster);
    },
  };
}

const fits = (batch: Batch, slice: Slice): boolean => !slice.isClosed && slice.freeMiB >= batch.model.memoryMiB;

function leastSlowed(batch: Batch, { devices }: Cluster): Slice | undefined {
  let best: Slice | undefined;
  let least = Infinity;
  for (const { slices } of devices) {
    for (const slice of slices) {
      if (!fits(batch, slice)) continue;
      const slowdown = slowdownOn(batch, slice);
      if (slowdown < least) [best, least] = [slice, slowdown];
    }
  }
  return best;
}

/** Equation 2 with the truth. */
function slowdownOn({ model }: Batch, { profile, runs }: Slice): number {
  const at = profileAt(profile);
  const demand = runs.reduce((sum, { bandwidth }) => sum + bandwidth, model.bandwidth[at] as number);
  return (model.deficiency[at] as number) * Math.max(1, demand);
}

function smallestFirst(batch: Batch, { devices }: Cluster): Slice | undefined {
  let best: Slice | undefined;
  for (const { slices } of devices) {
    for (const slice of slices) {
      if (fits(batch, slice) && (best === undefined || profileAt(slice.profile) > profileAt(best.profile)))
        best = slice;
    }
  }
  return best;
}

/**
 * Replays every choice, and takes for each period the choice with the most strict requests within their SLO, then with the least P99:
 * what an oracle reaches that changes geometry at no cost. Batches that reach into the next period are not moved.
 */
export function oracle(world: World, batches: readonly Batch[], factor: number, count?: number): Served[] {
  const periodOf = ({ batch }: Served): number => Math.floor(batch.readyMs / periodMs);
  const best = new Map<number, { served: Served[]; met: number; p99: number }>();
  for (const geometry of geometries) {
    for (const rule of bestEffortRules) {
      if (geometry.length === 1 && rule === 'spread') continue;
      const byPeriod = new Map<number, Served[]>();
      for (const one of serve(world, batches, trueSlowdowns(geometry, rule), count).served) {
        const there = byPeriod.get(periodOf(one));
        if (there === undefined) byPeriod.set(periodOf(one), [one]);
        else there.push(one);
      }
      for (const [period, served] of byPeriod) {
        const met = compliance(served, factor);
        const [p99 = 0] = quantiles(latencies(served, true, 'ms'), [99]);
        const known = best.get(period);
        if (known === undefined || met > known.met || (met === known.met && p99 < known.p99)) {
          best.set(period, { served, met, p99 });
        }
      }
    }
  }
  return [...best.values()].flatMap(({ served }) => served);
}
