import { readTable } from '@gpuwhisk/bench/data/csv';
import { saturationOf, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { PowerPoint } from '../model/igniter.js';
import { tableOne } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { readRappSurfaces, timeOverShare } from './surfaces.js';
import { invented } from '@gpuwhisk/bench/replay/workloads/catalogue';

/** Batches of RaPP's surfaces. */
const batches = [1, 2, 4, 8];

/**
 * Inference that leaves SMs idle: the models of table I whose own surface RaPP measured (V100), at its batches. Times and
 * stretch are measured; traffic is that of the nearest model in the same batch (RTX 3080), power the mean of iGniter's
 * models in the nearest batch that it measured (V100). Each takes half of `memoryMiB`, so that pairs share a GPU.
 */
export async function readIdleModels(
  power: readonly PowerPoint[],
  idleW: number,
  memoryMiB: number,
  folder?: string,
): Promise<CatalogueEntry[]> {
  const rows = tableOne.filter(({ isOwnSurface }) => isOwnSurface);
  const surfaces = await readRappSurfaces(new Set(rows.map(({ surface }) => surface)), folder);
  const columns = {
    gpu: 'text',
    model: 'text',
    batch: 'number',
    l2_util_pct: 'number',
    dram_util_pct: 'number',
  } as const;
  const traffic = (await readTable('surfaces/glet_gpu_util.csv', columns, folder)).filter(({ gpu }) => gpu === '3080');
  return rows.flatMap((row) =>
    batches.map((batch): CatalogueEntry => {
      const surface = surfaces.get(row.surface);
      const util = traffic.find((one) => one.model === row.traffic && one.batch === batch);
      if (!surface || !util) throw new RangeError(`${row.name} lacks a surface or traffic at batch ${batch}`);
      const name = `${row.name}-${batch}`;
      const time = timeOverShare(surface, batch);
      const stretch = stretchTable(time);
      return {
        name,
        class: 'inference',
        batch,
        unitMs: time(1),
        memoryMiB: memoryMiB / 2,
        model: {
          name,
          stretch,
          saturation: saturationOf(stretch),
          l2Util: util.l2_util_pct / 100,
          dramUtil: util.dram_util_pct / 100,
          powerW: meanPowerW(power, batch) - idleW,
        },
        sources: {
          unitMs: `rapp_v100 ${row.surface}`,
          memoryMiB: invented,
          stretch: `rapp_v100 ${row.surface}`,
          traffic: `glet_gpu_util 3080 ${row.traffic}`,
        },
      };
    }),
  );
}

/** Mean power of the models on the whole GPU, in the batch nearest to `batch`, W. */
function meanPowerW(power: readonly PowerPoint[], batch: number): number {
  const whole = power.filter(({ share }) => share === 1);
  const distance = (one: PowerPoint): number => Math.abs(one.batch - batch);
  const nearest = Math.min(...whole.map(distance));
  const near = whole.filter((one) => distance(one) === nearest);
  return near.reduce((sum, one) => sum + one.powerW, 0) / near.length;
}
