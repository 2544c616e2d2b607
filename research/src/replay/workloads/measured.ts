import { readTable, BenchDataError, lucidPairColumns } from '@gpuwhisk/bench/data/csv';
import { readLucidAlone } from '../../data/interference.js';
import { readStandInModel } from '@gpuwhisk/bench/stand-in-model';
import { saturationOf, stretchTable } from '@gpuwhisk/bench/replay/model/gpu-model';
import type { PowerPoint } from '../model/igniter.js';
import type { MeasuredPair } from '../truth.js';
import { invented, sloFactor, tableOne } from '@gpuwhisk/bench/replay/workloads/catalogue';
import type { CatalogueEntry } from '@gpuwhisk/bench/replay/workloads/catalogue';
import { readRappSurfaces, timeOverShare } from './surfaces.js';

/** The largest batch with measured traffic and power. */
const trafficBatch = 32;

/**
 * Inference of FaaShare's table I. The solo time of a batch is a quarter of its SLO and its stretch is RaPP's (V100).
 * Its traffic is that of the nearest model measured on an RTX 3080, its power the mean of iGniter's models (V100), and
 * its memory that of the stand-in's parameters.
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

/** Models whose training stands for table I's deep learning rows as best effort (FaaShare, section IX-A). */
const ofTableOne = new Set(['ResNet18', 'ResNet50', 'VGG', 'MobileNetV2', 'MobileNetV3']);
/** Minimum use of the SMs: a model keeps some busy even where the driver's sampling reports none. */
const leastUse = 0.05;

const keyOf = (model: string, dataset: string, batch: number, amp: number): string =>
  `${model}-${dataset}-${batch}${amp === 1 ? '-amp' : ''}`;

/**
 * Solo training on an RTX 3090 (Lucid). Time, memory and use of an iteration are measured. The stretch below its use of
 * the GPU, the L2 traffic and the power were not; the stretch is assumed to be inversely proportional to the share.
 */
export async function readLucidSolo(powerW: number, folder?: string): Promise<CatalogueEntry[]> {
  const rows = await readLucidAlone(folder);
  return rows.map((row): CatalogueEntry => {
    const name = keyOf(row.model, row.dataset, row.batch, row.amp);
    const use = Math.min(1, Math.max(leastUse, row.gpu_util_pct / 100));
    const stretch = stretchTable((share) => Math.max(1, use / share));
    const dramUtil = row.gpu_mem_util_pct / 100;
    return {
      name,
      class: 'training',
      batch: row.batch,
      unitMs: (1000 * row.batch) / row.speed_samples_per_s,
      memoryMiB: Math.round(row.gpu_mem_mb),
      model: { name, stretch, saturation: saturationOf(stretch), l2Util: dramUtil / 2, dramUtil, powerW: powerW * use },
      sources: {
        unitMs: `lucid_training_solo ${name}`,
        memoryMiB: `lucid_training_solo ${name}`,
        stretch: invented,
        traffic: invented,
      },
    };
  });
}

/** Those of `entries` whose models are in FaaShare's table I. */
export function trainingOfTableOne(entries: readonly CatalogueEntry[]): CatalogueEntry[] {
  return entries.filter(({ name }) => ofTableOne.has(name.split('-')[0] as string));
}

/** Lucid's pairs with the slowdown of each side. A relative speed above 1 is noise and counts as 1. */
export async function readLucidPairs(folder?: string): Promise<MeasuredPair[]> {
  const rows = await readTable('interference/lucid_training_pairs.csv', lucidPairColumns, folder);
  return rows
    .filter((row) => row.norm_speed_a > 0 && row.norm_speed_b > 0)
    .map((row) => ({
      a: keyOf(row.model_a, row.dataset_a, row.batch_a, row.amp_a),
      b: keyOf(row.model_b, row.dataset_b, row.batch_b, row.amp_b),
      slowdownA: 1 / Math.min(1, row.norm_speed_a),
      slowdownB: 1 / Math.min(1, row.norm_speed_b),
    }));
}

/**
 * A set of workloads of which each two, and each with itself, were measured together. The set grows greedily from the
 * workload with the most partners. Throws BenchDataError if fewer than three are left.
 */
export function measuredTogether(pairs: readonly MeasuredPair[]): string[] {
  const partners = new Map<string, Set<string>>();
  const add = (one: string, other: string): void => {
    const known = partners.get(one);
    if (known) known.add(other);
    else partners.set(one, new Set([other]));
  };
  for (const { a, b } of pairs) {
    add(a, b);
    add(b, a);
  }
  const names = [...partners.keys()].sort(
    (a, b) => (partners.get(b)?.size ?? 0) - (partners.get(a)?.size ?? 0) || (a < b ? -1 : 1),
  );
  const together: string[] = [];
  for (const name of names) {
    if ([name, ...together].every((other) => partners.get(name)?.has(other))) together.push(name);
  }
  if (together.length < 3) throw new BenchDataError('Fewer than three workloads were all measured beside each other.');
  return together;
}
