import { BenchDataError, readTable } from '../../data/csv.js';
import { lucidPairColumns } from '../../data/pair-columns.js';
import { saturationOf, stretchTable } from '../model/gpu-model.js';
import type { MeasuredPair } from '../truth.js';
import type { CatalogueEntry } from './catalogue.js';
import { invented } from './catalogue.js';

/** Models whose training stands for table I's deep learning rows as best effort (FaaShare, section IX-A). */
const ofTableOne = new Set(['ResNet18', 'ResNet50', 'VGG', 'MobileNetV2', 'MobileNetV3']);
/** A model keeps some SMs busy even where the driver's sampling saw nothing. */
const leastUse = 0.05;

const keyOf = (model: string, dataset: string, batch: number, amp: number): string =>
  `${model}-${dataset}-${batch}${amp === 1 ? '-amp' : ''}`;

/**
 * Training alone on an RTX 3090 (Lucid): one iteration's time, memory and use are measured. How its time stretches below
 * its use of the GPU, its L2 traffic and its power were not: the first is taken to be inversely proportional.
 */
export async function readLucidSolo(powerW: number, folder?: string): Promise<CatalogueEntry[]> {
  const rows = await readTable(
    'interference/lucid_training_solo.csv',
    {
      model: 'text',
      dataset: 'text',
      batch: 'number',
      amp: 'number',
      speed_samples_per_s: 'number',
      gpu_util_pct: 'number',
      gpu_mem_util_pct: 'number',
      gpu_mem_mb: 'number',
    },
    folder,
  );
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

/** Lucid's pairs: what each is slowed down to beside the other. A speed above 1 is noise and counts as 1. */
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
 * A set of workloads each two of which, and each with itself, were measured beside each other, grown greedily from the
 * one with the most partners. Throws BenchDataError where no three are left.
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
