import { performance } from 'node:perf_hooks';
import { seededRandom, randomFraction } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import type { WorkloadFeatures } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import { QuotaTable } from '@gpuwhisk/gpu/share/quota-table';
import type { QuotaJob } from '@gpuwhisk/gpu/share/quotas';
import { medianOf } from '@gpuwhisk/bench/bench';
import type { Bench, Measurement } from '@gpuwhisk/bench/bench';
import { randomItem } from '@gpuwhisk/bench/statistics';
import { comparison } from './quota-compare.js';
import { igniterSurfaces, rappSurfaces } from '../data/quota-surfaces.js';

/** FaaShare's optimiser on measured surfaces of a V100 (BENCH_DATA), and the configuration table. */
export const quota: Bench = {
  summary: 'shares for jobs on one GPU: distance of the search from the optimum, time of a look-up',
  parts: ['search', 'table'],
  async run({ options, say }) {
    const wanted = (part: string): boolean => options.parts.length === 0 || options.parts.includes(part);
    const measurements: Measurement[] = [];
    if (wanted('search')) {
      const rapp = await rappSurfaces();
      const igniter = await igniterSurfaces();
      measurements.push(...(await comparison({ rapp, igniter, sets: 6 * options.samples, seed: options.seed, say })));
    }
    if (wanted('table')) measurements.push(...measureTable(options.samples, seededRandom(options.seed)));
    return measurements;
  },
};

const rows = 4096;
const functions = 300;
const pointsPerRow = 7;
/** Calls of a sample; few enough that other work on the machine does not interrupt most samples. */
const callsPerSample = 100;
const gpuType = 'v100';

/** Time of a look-up in a full table: of a set in the table, and of one that a similar set answers. */
function measureTable(samples: number, random: Random): Measurement[] {
  const table = new QuotaTable({ predictorOf: () => ({ slowdown: () => 1 }) });
  const jobs = Array.from({ length: functions }, (_, at) => job(`/guest/function${at}`, random));
  const sets = Array.from({ length: rows }, (_, at) =>
    Array.from({ length: at % 2 ? 3 : 4 }, () => randomItem(jobs, random)),
  );
  for (const set of sets) {
    for (let point = 0; point < pointsPerRow; point += 1) {
      const shares = set.map(() => randomItem([10, 20, 30], random));
      const slowdowns = set.map(() => 1 + randomFraction(random));
      const refused = table.record(set, { gpuType, mode: 'mps' }, { shares, slowdowns }, 550);
      if (refused !== undefined) throw new Error(`a measurement was refused: ${refused}`);
    }
  }
  const known = sets.filter((set) => table.pointsOf(set, { gpuType, mode: 'mps' }).length > 0);
  const unseen = known.map((set) => set.map((one) => ({ ...one, version: '0.0.2', features: moved(one, random) })));
  return [
    medianOf('tableHitUs', time(table, known, 'hit', 20 * samples)),
    medianOf('tableNearestUs', time(table, unseen, 'nearest', samples, 5)),
  ];
}

/** The time of one look-up, µs, as the mean of the calls of each sample. Throws if an answer is not from `source`. */
function time(
  table: QuotaTable,
  sets: readonly QuotaJob[][],
  source: 'hit' | 'nearest',
  samples: number,
  calls = callsPerSample,
): number[] {
  let at = 0;
  return Array.from({ length: samples }, () => {
    const start = performance.now();
    for (let call = 0; call < calls; call += 1) {
      const set = sets[at] ?? [];
      at = (at + 1) % sets.length;
      // The last job has a deadline that most points meet, but not all.
      const budgets = set.map((one, place) => (place === set.length - 1 ? 1.9 * (one.soloMs ?? Infinity) : Infinity));
      const leftMs = set.map((one, place) => (one.soloMs ?? 0) / (1 + place));
      const choice = table.shareFor(set, { gpuType, mode: 'mps' }, budgets, [], leftMs);
      if (choice.source !== source) {
        throw new Error(`a look-up was answered from '${choice.source}'`);
      }
    }
    return ((performance.now() - start) * 1000) / calls;
  });
}

/** Features that differ slightly. */
function moved({ features = { smUtil: 0 } }: QuotaJob, random: Random): WorkloadFeatures {
  const { smUtil, dramUtil = 0, l2Util = 0 } = features;
  const move = (value: number): number => value + 0.1 * (randomFraction(random) - 0.5);
  return { smUtil: move(smUtil), dramUtil: move(dramUtil), l2Util: move(l2Util) };
}

function job(name: string, random: Random): QuotaJob {
  const features = {
    smUtil: randomFraction(random),
    dramUtil: randomFraction(random),
    l2Util: randomFraction(random),
  };
  return { function: name, version: '0.0.1', batch: 2 ** Math.floor(randomFraction(random) * 5), soloMs: 10, features };
}
