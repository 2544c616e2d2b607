// Measured pairs as samples of SMORE's pair-wise predictor.
import type { FeatureRecord } from '@gpuwhisk/gpu/predict/slowdown-predictor';
import type { PairSample, PairSide } from '@gpuwhisk/gpu/predict/pair-degradation';
import { igniterPairColumns, lucidPairColumns, readTable } from '@gpuwhisk/bench/data/csv';
import { igniterColumns, readGavelPairs, readLucidAlone } from '../data/interference.js';

/** Measured pairs of one source on one GPU; both sides of a measurement follow each other. */
export interface DegradationSet {
  name: string;
  samples: readonly DegradationSample[];
}

/** A sample with the names of the models without batch or precision, for splits that leave a model out. */
export interface DegradationSample extends PairSample {
  /** Equal for all samples of one pair of workloads. */
  pair: string;
  /** Models of both sides. */
  models: readonly [string, string];
}

interface Measured extends PairSide {
  base: string;
  degradation: number;
}

const staticColumns = {
  model: 'text',
  params: 'number',
  flops: 'number',
  activation_elems: 'number',
  n_activation: 'number',
  n_relu: 'number',
  n_conv: 'number',
  n_linear: 'number',
  n_norm: 'number',
  n_embed: 'number',
  n_pool: 'number',
  n_dropout: 'number',
} as const;

/**
 * The eleven static features of each model in BENCH_DATA but batch and memory. `activation_elems`, elements of the layers'
 * outputs of one sample, are beside them for estimates of memory.
 */
async function staticFeatures(folder?: string): Promise<Map<string, FeatureRecord & { activationElems: number }>> {
  const table = await readTable('models/static_features.csv', staticColumns, folder);
  return new Map(
    table.map((row) => [
      row.model,
      {
        flops: row.flops,
        params: row.params,
        activations: row.n_activation,
        convLayers: row.n_conv,
        linearLayers: row.n_linear,
        normLayers: row.n_norm,
        reluLayers: row.n_relu,
        embedLayers: row.n_embed,
        poolLayers: row.n_pool,
        dropoutLayers: row.n_dropout,
        activationElems: row.activation_elems,
      },
    ]),
  );
}

/** Bytes of a parameter in training: value, gradient and two moments in single precision. */
const bytesPerParam = 16;
/** Bytes of an activation: value and gradient. */
const bytesPerActivation = 8;

/**
 * Gavel's pairs of training jobs on one GPU type: static features, and the solo time of a step. Gavel measured no memory:
 * `memoryMiB` is an estimate from parameters and activations.
 */
export async function gavelDegradations(gpu: 'p100' | 'v100', folder?: string): Promise<DegradationSet> {
  const features = await staticFeatures(folder);
  const side = (job: string, batch: number, alone: number, together: number): Measured => {
    const found = features.get(`gavel:${job}`);
    if (found === undefined) throw new Error(`No counts of Gavel's ${job} in models/static_features.csv.`);
    const { activationElems, ...counts } = found;
    // A job without a batch processes one sample a step.
    const samples = Math.max(batch, 1);
    const bytes = counts.params === undefined ? 0 : counts.params * bytesPerParam;
    const memoryMiB = (bytes + activationElems * samples * bytesPerActivation) / 2 ** 20;
    return {
      model: `${job}/${batch}`,
      base: job,
      features: { ...counts, batch: samples, memoryMiB, soloMs: 1000 / alone },
      degradation: alone / together - 1,
    };
  };
  const measured = await readGavelPairs(gpu, folder);
  return setOf(
    gpu === 'p100' ? 'gavelP100' : 'gavelV100',
    measured.map((row) => [
      side(row.job_a, row.batch_a, row.thr_a_solo, row.thr_a_co),
      side(row.job_b, row.batch_b, row.thr_b_solo, row.thr_b_co),
    ]),
  );
}

/** Lucid's pairs of training jobs on an RTX 3090: figures of runs alone only, as six of its models have no static features. */
export async function lucidDegradations(folder?: string): Promise<DegradationSet> {
  const alone = await readLucidAlone(folder);
  const nameOf = (...parts: readonly (string | number)[]): string => parts.join('/');
  const aloneOf = new Map(alone.map((row) => [nameOf(row.model, row.dataset, row.batch, row.amp), row]));
  const rows = await readTable('interference/lucid_training_pairs.csv', lucidPairColumns, folder);
  const side = (model: string, speed: number): Measured => {
    const solo = aloneOf.get(model);
    if (solo === undefined)
      throw new Error(`No measurement of ${model} alone in interference/lucid_training_solo.csv.`);
    return {
      model,
      base: solo.model,
      features: {
        smUtil: solo.gpu_util_pct / 100,
        dramUtil: solo.gpu_mem_util_pct / 100,
        memoryMiB: solo.gpu_mem_mb,
        batch: solo.batch,
        soloMs: (1000 * solo.batch) / solo.speed_samples_per_s,
        mixedPrecision: solo.amp,
      },
      degradation: 1 / speed - 1,
    };
  };
  return setOf(
    'lucid3090',
    rows.map((row) => [
      side(nameOf(row.model_a, row.dataset_a, row.batch_a, row.amp_a), row.norm_speed_a),
      side(nameOf(row.model_b, row.dataset_b, row.batch_b, row.amp_b), row.norm_speed_b),
    ]),
  );
}

/**
 * iGniter's pairs of inference functions under MPS on a V100, at shares that sum to 100 %; D relates to the solo time at
 * the same share. Utilisations are those alone at the share.
 */
export async function igniterDegradations(folder?: string): Promise<DegradationSet> {
  const alone = await readTable('surfaces/igniter_v100_gpulet_solo.csv', igniterColumns, folder);
  const aloneOf = new Map(alone.map((row) => [`${row.model}/${row.batch}/${row.partition_pct}`, row]));
  const rows = await readTable('interference/igniter_v100_mps_pairs.csv', igniterPairColumns, folder);
  const side = (base: string, batch: number, sharePct: number, soloMs: number, togetherMs: number): Measured => {
    const model = `${base}/${batch}/${sharePct}`;
    const solo = aloneOf.get(model);
    if (solo === undefined)
      throw new Error(`No measurement of ${model} alone in surfaces/igniter_v100_gpulet_solo.csv.`);
    return {
      model,
      base,
      features: {
        batch,
        soloMs,
        share: sharePct / 100,
        ...(solo.l2_util_pct !== undefined && { l2Util: solo.l2_util_pct / 100 }),
        ...(solo.dram_util_pct !== undefined && { dramUtil: solo.dram_util_pct / 100 }),
      },
      degradation: togetherMs / soloMs - 1,
    };
  };
  return setOf(
    'igniterV100',
    rows.map((row) => [
      side(row.model_a, row.batch_a, row.partition_a_pct, row.lat_a_solo_ms, row.lat_a_co_ms),
      side(row.model_b, row.batch_b, row.partition_b_pct, row.lat_b_solo_ms, row.lat_b_co_ms),
    ]),
  );
}

function setOf(name: string, measurements: readonly (readonly [Measured, Measured])[]): DegradationSet {
  const samples = measurements.flatMap(([a, b]) => {
    // Shares do not make another pair: iGniter's names end with them.
    const pair = [a.model, b.model].map((model) => model.split('/').slice(0, 2).join('/')).sort();
    const whole = name === 'igniterV100' ? pair : [a.model, b.model].sort();
    return (
      [
        [a, b],
        [b, a],
      ] as const
    ).map(([victim, neighbour]) => ({
      pair: whole.join(' + '),
      models: [victim.base, neighbour.base] as const,
      victim: { model: victim.model, features: victim.features },
      neighbour: { model: neighbour.model, features: neighbour.features },
      degradation: victim.degradation,
    }));
  });
  return { name, samples };
}
