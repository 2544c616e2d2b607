import type { Row } from '@gpuwhisk/bench/data/csv';
import { readTable, igniterPairColumns, lucidPairColumns } from '@gpuwhisk/bench/data/csv';

/** Kind of a job's neighbours, or of a pair: limited by memory, limited by compute, or one of each. */
export type Pattern = 'memory' | 'mixed' | 'compute';

/** One job of a measured pair, beside the other. */
export interface InterferenceRow {
  /** Equal for all rows of one pair of workloads, at any shares. */
  pair: string;
  workload: string;
  neighbour: string;
  /** Equal for the two rows that were measured together. */
  measurement: number;
  pattern: Pattern;
  features: Float64Array;
  /** Time beside the neighbour over solo time. */
  slowdown: number;
}

/** Measured pairs of one source on one GPU. */
export interface InterferenceSet {
  name: string;
  featureNames: readonly string[];
  rows: readonly InterferenceRow[];
}

/** One job of a measurement, in the files' terms. */
export interface Side {
  workload: string;
  model: string;
  /** The same features for all workloads of a set, measured alone. */
  solo: Readonly<Record<string, number>>;
  /** Comparable within a set; a higher value means that memory limits the workload more than arithmetic does. */
  memoryIntensity: number;
  slowdown: number;
}

/** Columns of Gavel's pairs. */
export const gavelColumns = {
  gpu: 'text',
  job_a: 'text',
  batch_a: 'number',
  job_b: 'text',
  batch_b: 'number',
  thr_a_solo: 'number',
  thr_a_co: 'number',
  thr_b_solo: 'number',
  thr_b_co: 'number',
  feasible: 'number',
} as const;

/** Columns of iGniter's models alone. */
export const igniterColumns = {
  model: 'text',
  batch: 'number',
  partition_pct: 'number',
  latency_ms: 'number',
  l2_util_pct: 'optionalNumber',
  dram_util_pct: 'optionalNumber',
} as const;

/** Gavel's pairs of training jobs that run together on one GPU of a type, in steps a second. */
export async function readGavelPairs(gpu: 'p100' | 'v100', folder?: string): Promise<Row<typeof gavelColumns>[]> {
  const rows = await readTable('interference/gavel_pairs.csv', gavelColumns, folder);
  return rows.filter((row) => row.gpu === gpu && row.feasible === 1);
}

/**
 * Gavel's pairs of training jobs on one GPU type. Gavel measured no utilisation: features are the solo speed and batch,
 * and counts from the model's definition. Pairs that do not fit into the memory are left out.
 */
export async function gavelSet(gpu: 'p100' | 'v100', folder?: string): Promise<InterferenceSet> {
  const counts = await readTable(
    'models/static_features.csv',
    { model: 'text', params: 'number', flops: 'number', activation_elems: 'number' },
    folder,
  );
  const countsOf = new Map(counts.map((row) => [row.model, row]));
  const side = (job: string, batch: number, alone: number, together: number): Side => {
    const model = countsOf.get(`gavel:${job}`);
    if (!model) throw new Error(`No counts of Gavel's ${job} in models/static_features.csv.`);
    // A job without a batch processes one sample a step.
    const samplesPerS = alone * Math.max(batch, 1);
    return {
      workload: `${job}/${batch}`,
      model: job,
      solo: {
        logStepsPerS: Math.log(alone),
        logBatch: Math.log(Math.max(batch, 1)),
        logSamplesPerS: Math.log(samplesPerS),
        logParams: Math.log(model.params),
        logFlops: Math.log(model.flops),
        logActivations: Math.log(model.activation_elems),
        logFlopsPerS: Math.log(samplesPerS * model.flops),
        logActivationsPerS: Math.log(samplesPerS * model.activation_elems),
      },
      memoryIntensity: model.activation_elems / model.flops,
      slowdown: alone / together,
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

const lucidAloneColumns = {
  model: 'text',
  dataset: 'text',
  batch: 'number',
  amp: 'number',
  speed_samples_per_s: 'number',
  gpu_util_pct: 'number',
  gpu_mem_util_pct: 'number',
  gpu_mem_mb: 'number',
} as const;

/** Lucid's training jobs alone on an RTX 3090. */
export function readLucidAlone(folder?: string): Promise<Row<typeof lucidAloneColumns>[]> {
  return readTable('interference/lucid_training_solo.csv', lucidAloneColumns, folder);
}

/** Lucid's pairs of training jobs on an RTX 3090. */
export async function lucidSet(folder?: string): Promise<InterferenceSet> {
  const alone = await readLucidAlone(folder);
  const keyOf = (...parts: readonly (string | number)[]): string => parts.join('/');
  const aloneOf = new Map(alone.map((row) => [keyOf(row.model, row.dataset, row.batch, row.amp), row]));
  const pairs = await readTable('interference/lucid_training_pairs.csv', lucidPairColumns, folder);
  const side = (workload: string, speed: number): Side => {
    const solo = aloneOf.get(workload);
    if (!solo) throw new Error(`No measurement of ${workload} alone in interference/lucid_training_solo.csv.`);
    return {
      workload,
      model: solo.model,
      solo: {
        smUtil: solo.gpu_util_pct / 100,
        dramUtil: solo.gpu_mem_util_pct / 100,
        memoryGiB: solo.gpu_mem_mb / 1024,
        logSamplesPerS: Math.log(solo.speed_samples_per_s),
        logBatch: Math.log(solo.batch),
        mixedPrecision: solo.amp,
      },
      memoryIntensity: solo.gpu_mem_util_pct,
      slowdown: 1 / speed,
    };
  };
  return setOf(
    'lucid3090',
    pairs.map((row) => [
      side(keyOf(row.model_a, row.dataset_a, row.batch_a, row.amp_a), row.norm_speed_a),
      side(keyOf(row.model_b, row.dataset_b, row.batch_b, row.amp_b), row.norm_speed_b),
    ]),
  );
}

/**
 * iGniter's pairs of inference jobs under MPS on a V100, with shares that sum to 100 %. Slowdowns relate to the solo
 * time at the same share (`contention`), which shows the neighbour's effect alone. With `share` they relate to the solo
 * time at 80 %, the greatest share that was measured for all batches, which is what a scheduler needs.
 */
export async function igniterSet(over: 'contention' | 'share', folder?: string): Promise<InterferenceSet> {
  const alone = await readTable('surfaces/igniter_v100_gpulet_solo.csv', igniterColumns, folder);
  const aloneOf = new Map(alone.map((row) => [`${row.model}/${row.batch}/${row.partition_pct}`, row]));
  const soloOf = (model: string, batch: number, sharePct: number): (typeof alone)[number] => {
    const row = aloneOf.get(`${model}/${batch}/${sharePct}`);
    if (!row) throw new Error(`No measurement of ${model}, batch ${batch}, alone at ${sharePct} %.`);
    return row;
  };
  const pairs = await readTable('interference/igniter_v100_mps_pairs.csv', igniterPairColumns, folder);
  const side = (model: string, batch: number, sharePct: number, soloMs: number, togetherMs: number): Side => {
    const here = soloOf(model, batch, sharePct);
    const most = soloOf(model, batch, 80);
    if (here.l2_util_pct === undefined || here.dram_util_pct === undefined) {
      throw new Error(`No utilisation of ${model}, batch ${batch}, at ${sharePct} %.`);
    }
    return {
      workload: `${model}/${batch}`,
      model,
      solo: {
        l2Util: here.l2_util_pct / 100,
        dramUtil: here.dram_util_pct / 100,
        logSoloMs: Math.log(here.latency_ms),
        logBatch: Math.log(batch),
        share: sharePct / 100,
        soloMsOverThatAt80: here.latency_ms / most.latency_ms,
      },
      memoryIntensity: most.dram_util_pct ?? 0,
      slowdown: togetherMs / (over === 'contention' ? soloMs : most.latency_ms),
    };
  };
  return setOf(
    over === 'contention' ? 'igniterV100' : 'igniterV100Share',
    pairs.map((row) => [
      side(row.model_a, row.batch_a, row.partition_a_pct, row.lat_a_solo_ms, row.lat_a_co_ms),
      side(row.model_b, row.batch_b, row.partition_b_pct, row.lat_b_solo_ms, row.lat_b_co_ms),
    ]),
  );
}

/** Rows of both sides of each measurement; features are those of both sides, and the model of each. */
export function setOf(name: string, measurements: readonly (readonly [Side, Side])[]): InterferenceSet {
  const sides = measurements.flat();
  const models = [...new Set(sides.map(({ model }) => model))].sort();
  const intensities = new Map(sides.map(({ workload, memoryIntensity }) => [workload, memoryIntensity]));
  const sorted = [...intensities.values()].sort((a, b) => a - b);
  const middle = sorted[sorted.length >> 1] ?? 0;
  const featureNames = (['own', 'other'] as const).flatMap((whose) => [
    ...Object.keys(sides[0]?.solo ?? {}).map((feature) => `${whose}.${feature}`),
    ...models.map((model) => `${whose}.is.${model}`),
  ]);
  const featuresOf = ({ solo, model }: Side): number[] => [
    ...Object.values(solo),
    ...models.map((each) => Number(each === model)),
  ];
  const rows = measurements.flatMap(([a, b], measurement) => {
    const pair = [a.workload, b.workload].sort().join(' + ');
    const limited = [a, b].filter(({ memoryIntensity }) => memoryIntensity >= middle).length;
    const pattern = (['compute', 'mixed', 'memory'] as const)[limited] ?? 'mixed';
    return [[a, b] as const, [b, a] as const].map(([one, other]) => ({
      pair,
      workload: one.workload,
      neighbour: other.workload,
      measurement,
      pattern,
      features: Float64Array.from([...featuresOf(one), ...featuresOf(other)]),
      slowdown: one.slowdown,
    }));
  });
  return { name, featureNames, rows };
}
