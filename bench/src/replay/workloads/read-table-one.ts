import { readTable } from '../../data/csv.js';
import { readStandInModel } from '../../stand-in-model.js';
import { saturationOf, stretchTable } from '../model/gpu-model.js';
import type { PowerPoint } from '../model/igniter.js';
import type { CatalogueEntry } from './catalogue.js';
import { invented } from './catalogue.js';
import { readRappSurfaces, timeOverShare } from './surfaces.js';
import { sloFactor, tableOne } from './table-one.js';

/** The largest batch whose traffic and power were measured. */
const trafficBatch = 32;

/**
 * Inference of FaaShare's table I: a batch takes a quarter of its SLO alone; its stretch is RaPP's (V100), its traffic
 * that of the nearest model measured on an RTX 3080, its power the mean of iGniter's models (V100), its memory that of
 * the stand-in's parameters.
 */
export async function readTableOne(
  power: readonly PowerPoint[],
  idleW: number,
  folder?: string,
): Promise<CatalogueEntry[]> {
  const surfaces = await readRappSurfaces(new Set(tableOne.map(({ surface }) => surface)), folder);
  const traffic = await readTable(
    'surfaces/glet_gpu_util.csv',
    { gpu: 'text', model: 'text', batch: 'number', l2_util_pct: 'number', dram_util_pct: 'number' },
    folder,
  );
  const standIn = readStandInModel();
  const full = power.filter(({ share, batch }) => share === 1 && batch === trafficBatch);
  const powerW = full.reduce((sum, one) => sum + one.powerW - idleW, 0) / full.length;
  return tableOne.flatMap((row) => {
    const surface = surfaces.get(row.surface);
    const util = traffic.find(
      ({ gpu, model, batch }) => gpu === '3080' && model === row.traffic && batch === trafficBatch,
    );
    const sizes = standIn.workloads.find(({ name }) => name === row.name);
    if (!surface || !util || !sizes) throw new RangeError(`table I's ${row.name} lacks a surface, traffic or memory`);
    return [...row.slosMs].map(([batch, sloMs]): CatalogueEntry => {
      const name = `${row.name}-${batch}`;
      const stretch = stretchTable(timeOverShare(surface, batch));
      return {
        name,
        class: 'inference',
        batch,
        unitMs: sloMs / sloFactor,
        memoryMiB: Math.round(sizes.weightsMiB + batch * sizes.itemMiB),
        model: {
          name,
          stretch,
          saturation: saturationOf(stretch),
          l2Util: util.l2_util_pct / 100,
          dramUtil: util.dram_util_pct / 100,
          powerW,
        },
        sources: {
          unitMs: 'FaaShare, table I: SLO / 4',
          memoryMiB: invented,
          stretch: row.isOwnSurface ? `rapp_v100 ${row.surface}, batch 8 scaled` : invented,
          traffic: `glet_gpu_util 3080 ${row.traffic}`,
        },
      };
    });
  });
}
