// Models and GPUs of PROTEAN's experiments (section 5). The paper prints no times, bandwidths or memory by model: they are drawn.
import { gpuMemoryBound } from '@gpuwhisk/common/gpu';
import { randomFraction, type Random } from '@gpuwhisk/common/system/random';
import { computeSlicesOf, memorySlots, migProfiles } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import { readTable } from '@gpuwhisk/bench/data/csv';
import { median, randomItem } from '@gpuwhisk/bench/statistics';

/** The paper's GPU. */
export const deviceType = 'a100-40';

/** Profiles of the paper's table 2, the largest first. Tables of a model have one value for each. */
export const profiles = ['7g.40gb', '4g.20gb', '3g.20gb', '2g.10gb', '1g.5gb'] as const;
export type Profile = (typeof profiles)[number];

/** Device memory that a profile can give away, MiB. Throws RangeError for a profile that is not in table 2. */
export function memoryOf(profile: string): number {
  return Math.floor(entryOf(profile).memoryMiB * gpuMemoryBound);
}

/** Position of a profile in `profiles`. Throws RangeError for another one. */
export function profileAt(profile: string): number {
  const at = profiles.indexOf(profile as Profile);
  if (at < 0) throw new RangeError(`there is no profile '${profile}' in PROTEAN's table 2`);
  return at;
}

/** Part of the device's memory bandwidth that a profile has. */
const bandwidthPart = (profile: string): number => entryOf(profile).slots / memorySlots;

function entryOf(profile: string): (typeof migProfiles)[typeof deviceType][number] {
  const found = migProfiles[deviceType].find(({ name }) => name === profile);
  if (found === undefined) throw new RangeError(`there is no profile '${profile}'`);
  return found;
}

/** A model as one draw has it. */
export interface ServedModel {
  name: string;
  kind: ModelKind;
  /** Requests of a full batch. */
  batch: number;
  /** Time of a full batch alone on 7g, ms. */
  soloMs: number;
  /** Memory of a batch, MiB. */
  memoryMiB: number;
  /** Resource deficiency factor on each of `profiles` (paper, section 3). */
  deficiency: readonly number[];
  /** Fractional bandwidth requirement on each of `profiles`, fraction of that slice's bandwidth. */
  bandwidth: readonly number[];
  /** It is one of the paper's high-interference models: the upper half of its kind by bandwidth. */
  isHigh: boolean;
}

const kinds = ['vision', 'language', 'generative'] as const;
type ModelKind = (typeof kinds)[number];

/** One draw of everything that the paper does not print. */
export interface World {
  models: readonly ServedModel[];
  /** Further slowdown of batches that share a slice, fraction: no part of equation 1. */
  clientCost: number;
  /** Standard deviation of the logarithm of a batch's time. */
  noise: number;
}

/** Names of models, their kind, the model of static_features.csv, and the measured model of the same family. */
const catalogue: readonly (readonly [name: string, kind: ModelKind, features?: string, measured?: string])[] = [
  ['ResNet 50', 'vision', 'resnet50', 'resnet50'],
  ['GoogleNet', 'vision', 'googlenet', 'googlenet'],
  ['DenseNet 121', 'vision', 'densenet121', 'densenet161'],
  ['DPN 92', 'vision', 'dpn92'],
  ['VGG 19', 'vision', 'vgg19', 'vgg16'],
  ['ResNet 18', 'vision', 'resnet18', 'resnet50'],
  ['MobileNet', 'vision', 'mobilenet_v1', 'mobilenet_v2'],
  ['MobileNet V2', 'vision', 'mobilenet_v2', 'mobilenet_v2'],
  ['SENet 18', 'vision', 'senet18', 'resnet50'],
  ['ShuffleNet V2', 'vision', 'shufflenet_v2_x1_0'],
  ['EfficientNet-B0', 'vision', 'efficientnet_b0', 'mnasnet1_0'],
  ['Simplified DLA', 'vision'],
  ['ALBERT', 'language', 'albert-base-v2'],
  ['BERT', 'language', 'bert-base'],
  ['DeBERTa', 'language'],
  ['DistilBERT', 'language', 'distilbert-base'],
  ['FlauBERT', 'language', 'flaubert-base'],
  ['Funnel-Transformer', 'language', 'funnel-transformer'],
  ['RoBERTa', 'language', 'roberta-base'],
  ['SqueezeBERT', 'language', 'squeezebert'],
  ['GPT-1', 'generative', 'openai-gpt'],
  ['GPT-2', 'generative', 'gpt2'],
];

/** Batch sizes of the paper. */
const batches: Readonly<Record<ModelKind, number>> = { vision: 128, language: 4, generative: 4 };

/** Times alone on 7g, ms, and memory of a batch, MiB (section 5). */
const soloMs = [50, 200] as const;
const memoryMiB = [2 * 1024, 14 * 1024] as const;
/**
 * Fractional bandwidth requirements on 7g. Figure 3 is normalised, so that the scale is open. Table 4 fixes it: five batches of ResNet 50
 * beside each other miss three times their time alone, and on slices most do not, so that it requires somewhat more than 0.6. It is about
 * the eighth of the twelve vision models. Language models require 59 % more on average, and GPT as much as there is (section 6.2: 42 % more).
 */
const bandwidths: Readonly<Record<ModelKind, readonly [number, number]>> = {
  vision: [0.1, 0.95],
  language: [0.75, 0.92],
  generative: [1, 1],
};
/** Further slowdown beside others. */
const clientCosts = [0, 0.05] as const;
const noise = 0.03;

/** The measured inputs of draws. */
export interface WorldData {
  /** Slowdowns on each of `profiles`, of measured training jobs, the flattest first. */
  deficiencies: readonly (readonly number[])[];
  /** DRAM use, %, by model as measured. */
  dramUse: ReadonlyMap<string, number>;
  /** Elements of activations of one sample, by model. */
  activations: ReadonlyMap<string, number>;
}

/** Reads what draws start from. Throws BenchDataError. */
export async function readWorldData(folder?: string): Promise<WorldData> {
  const [iterations, use, features] = await Promise.all([
    readTable('mig/miso_a100_training_iterations.csv', iterationColumns, folder),
    readTable('surfaces/glet_gpu_util.csv', useColumns, folder),
    readTable('models/static_features.csv', featureColumns, folder),
  ]);
  const rows = new Map<string, Map<string, number>>();
  // DeepSpeech2's inputs vary in length, so that its iterations tell little of slices.
  for (const { model, batch, mig_profile, slowdown_vs_7g } of iterations.filter((one) => one.model !== 'deepspeech2')) {
    const key = `${model} ${batch}`;
    rows.set(key, (rows.get(key) ?? new Map<string, number>()).set(mig_profile, slowdown_vs_7g));
  }
  const measured = use.filter(({ gpu, batch }) => gpu === '3080' && batch === 32);
  return {
    deficiencies: [...rows.values()].map(completed).sort((one, other) => (one[2] ?? 0) - (other[2] ?? 0)),
    dramUse: new Map(measured.map(({ model, dram_util_pct }) => [model, dram_util_pct])),
    activations: new Map(features.map(({ model, activation_elems }) => [model, activation_elems])),
  };
}

const iterationColumns = { model: 'text', batch: 'number', mig_profile: 'text', slowdown_vs_7g: 'number' } as const;
const useColumns = { gpu: 'text', model: 'text', batch: 'number', dram_util_pct: 'number' } as const;
const featureColumns = { model: 'text', activation_elems: 'number' } as const;

/**
 * Slowdowns on all profiles. A slice that the job did not fit on is continued in logarithms from the two larger ones, and no slice
 * is faster than a larger one.
 */
export function completed(row: ReadonlyMap<string, number>): number[] {
  const found: number[] = [];
  for (const [at, profile] of profiles.entries()) {
    const [before = 1, last = 1] = found.slice(-2);
    const sizes = profiles.slice(Math.max(0, at - 2), at + 1).map(computeSlicesOf);
    const continued = (): number => {
      const [a = 1, b = 1, c = 1] = sizes;
      return last * (b / c) ** (Math.log(last / before) / Math.log(a / b));
    };
    found.push(Math.max(last, row.get(profile) ?? continued()));
  }
  return found;
}

/** Draws a world. Within a kind, memory is ranked by the elements of activations. */
export function drawWorld(data: WorldData, random: Random): World {
  const within = ([least, most]: readonly [number, number]): number => least + (most - least) * randomFraction(random);
  const byBandwidth = new Map<string, number>();
  for (const kind of kinds) {
    const names = rankedByUse(kind, data, random);
    const values = sorted(names.map(() => within(bandwidths[kind])));
    for (const [at, name] of names.entries()) byBandwidth.set(name, values[at] as number);
  }
  const order = catalogue.map(([name]) => name).sort((a, b) => bandwidthOf(a) - bandwidthOf(b));
  const rows = sortedBy(
    order.map(() => randomItem(data.deficiencies, random)),
    (row) => row[2] ?? 0,
  );
  const byMemory = new Map<string, number>();
  for (const kind of kinds) {
    const activations = new Map(
      catalogue.flatMap(([name, of, features]) => {
        const known = features === undefined ? undefined : data.activations.get(features);
        const other = randomItem([...data.activations.values()], random);
        return of === kind ? [[name, known ?? other] as const] : [];
      }),
    );
    const names = sortedBy([...activations.keys()], (name) => activations.get(name) ?? 0);
    const sizes = sorted(names.map(() => within(memoryMiB)));
    for (const [at, name] of names.entries()) byMemory.set(name, sizes[at] as number);
  }
  // The part of the way from the paper's bandwidth, which is the same on all slices, to one that follows from the bytes of a batch.
  const bytes = randomFraction(random);
  const vision = catalogue.filter(([, kind]) => kind === 'vision').map(([name]) => bandwidthOf(name));
  const middle = median(vision);
  const models = catalogue.map(([name, kind]): ServedModel => {
    const deficiency = rows[order.indexOf(name)] as readonly number[];
    const bandwidth = bandwidthOf(name);
    return {
      ...{ name, kind, batch: batches[kind], soloMs: within(soloMs) },
      memoryMiB: byMemory.get(name) ?? 0,
      deficiency,
      bandwidth: profiles.map((profile, at) => {
        const factor = 1 / ((deficiency[at] as number) * bandwidthPart(profile));
        return Math.min(1, bandwidth * factor ** bytes);
      }),
      isHigh: bandwidth > middle,
    };
  });
  return { models, clientCost: within(clientCosts), noise };

  function bandwidthOf(name: string): number {
    return byBandwidth.get(name) ?? 0;
  }
}

/**
 * Models of a kind by their measured DRAM use, the least first: their own or that of a measured model of their family, below which
 * they are. Others are anywhere, but that the paper calls DPN 92 a model of high and ShuffleNet V2 one of low interference.
 */
function rankedByUse(kind: ModelKind, { dramUse }: WorldData, random: Random): string[] {
  const ofKind = catalogue.filter((one) => one[1] === kind);
  const known = ofKind.flatMap(([, , , measured]) => {
    const use = measured === undefined ? undefined : dramUse.get(measured);
    return use === undefined ? [] : [use];
  });
  const [least, middle, most] =
    known.length === 0 ? [0, 0, 1] : [Math.min(...known), median(known), Math.max(...known)];
  const bounds: Readonly<Record<string, readonly [number, number]>> = {
    'DPN 92': [middle, most],
    'ShuffleNet V2': [least, middle],
  };
  const key = new Map(
    ofKind.map(([name, , features, measured]) => {
      const use = measured === undefined ? undefined : dramUse.get(measured);
      const [from, to] = bounds[name] ?? [least, most];
      const drawn = randomFraction(random);
      if (use === undefined) return [name, from + (to - from) * drawn];
      return [name, features === measured ? use : use - 0.01 * (1 + drawn)];
    }),
  );
  return sortedBy([...key.keys()], (name) => key.get(name) ?? 0);
}

const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);

function sortedBy<Item>(items: readonly Item[], key: (item: Item) => number): Item[] {
  return [...items].sort((a, b) => key(a) - key(b));
}

/** Strict and best-effort requests of a model are functions of their own. */
export function functionOf({ model, isStrict }: { model: ServedModel; isStrict: boolean }): string {
  return isStrict ? `/n/${model.name} strict` : `/n/${model.name}`;
}
