import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Bench, Measurement } from '../bench.js';
import { comparison } from './quota-compare.js';
import { igniterSurfaces, rappSurfaces } from './quota-surfaces.js';
import { measureTable } from './quota-table.js';

/** FaaShare's optimiser on measured surfaces of a V100 (BENCH_DATA), and the configuration table. */
export const quota: Bench = {
  summary: 'shares for jobs on one GPU: how near the optimum the search comes, what a look-up costs',
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
