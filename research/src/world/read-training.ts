// Pairs of training jobs: Gavel (P100, V100, K80), Lucid (RTX 3090), Tally (a GPU that its authors do not name).
import { lucidPairColumns } from '@gpuwhisk/bench/data/csv';
import { gavelColumns } from '../data/interference.js';
import type { Contents, Folder } from './files.js';
import { add } from './read-kace.js';
import { workloadKey } from './sets.js';
import type { Alone, Member } from './sets.js';

const whole = 1;

/** A process on the whole device by its rates alone and together. */
const byRate = (workload: string, alone: number, together: number): Member => ({
  workload,
  share: whole,
  contention: alone / together,
  stretch: 1,
});

/**
 * Gavel's pairs of training jobs on one GPU of a type, in steps/s. Its mode is not stated. Pairs that do not fit into the
 * memory are skipped. Features are the solo speed and counts from the model's definition. Throws BenchDataError.
 */
export async function readGavel(folder: Folder): Promise<Contents> {
  const source = 'gavel';
  const counts = await folder.table('models/static_features.csv', {
    model: 'text',
    params: 'number',
    flops: 'number',
    activation_elems: 'number',
  });
  const countsOf = new Map(counts.map((row) => [row.model, row]));
  const rows = await folder.table('interference/gavel_pairs.csv', gavelColumns);
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  const alone = new Map<string, Alone>();
  for (const row of rows) {
    if (row.feasible !== 1) {
      contents.skipped.push({ row: row.at, why: 'the pair does not fit into the memory' });
      continue;
    }
    const sides = [
      { job: row.job_a, batch: row.batch_a, solo: row.thr_a_solo, together: row.thr_a_co },
      { job: row.job_b, batch: row.batch_b, solo: row.thr_b_solo, together: row.thr_b_co },
    ];
    const unknown = sides.find(({ job }) => !countsOf.has(`gavel:${job}`));
    if (unknown !== undefined) {
      contents.skipped.push({ row: row.at, why: `models/static_features.csv has no counts of ${unknown.job}` });
      continue;
    }
    const members = sides.map(({ job, batch, solo, together }) => {
      const workload = workloadKey({ source, model: job, variant: '', batch, task: 'training' });
      const model = countsOf.get(`gavel:${job}`);
      if (model !== undefined)
        alone.set(`${row.gpu} ${workload}`, {
          workload,
          source,
          gpu: row.gpu,
          features: {
            logMs: Math.log(1000 / solo),
            logBatch: Math.log(Math.max(batch, 1)),
            logParams: Math.log(model.params),
            logFlopsPerS: Math.log(solo * Math.max(batch, 1) * model.flops),
            logActivationsPerS: Math.log(solo * Math.max(batch, 1) * model.activation_elems),
          },
        });
      return byRate(workload, solo, together);
    });
    add(contents, { source, row: row.at, gpu: row.gpu, mode: 'unstated', members });
  }
  contents.alone = [...alone.values()];
  return contents;
}

/** Lucid's pairs of training jobs on an RTX 3090. Its mode is not stated. Throws BenchDataError. */
export async function readLucid(folder: Folder): Promise<Contents> {
  const source = 'lucid';
  const gpu = 'rtx3090';
  const solo = await folder.table('interference/lucid_training_solo.csv', {
    model: 'text',
    dataset: 'text',
    batch: 'number',
    amp: 'number',
    speed_samples_per_s: 'number',
    gpu_util_pct: 'number',
    gpu_mem_util_pct: 'number',
    gpu_mem_mb: 'number',
  });
  const key = (model: string, dataset: string, batch: number, amp: number): string =>
    workloadKey({ source, model, variant: amp === 1 ? `${dataset} amp` : dataset, batch, task: 'training' });
  const alone = solo.map((row): Alone => ({
    workload: key(row.model, row.dataset, row.batch, row.amp),
    source,
    gpu,
    features: {
      logMs: Math.log((1000 * row.batch) / row.speed_samples_per_s),
      logBatch: Math.log(row.batch),
      smUtil: row.gpu_util_pct / 100,
      memoryUtil: row.gpu_mem_util_pct / 100,
      logMemoryGiB: Math.log(row.gpu_mem_mb / 1024),
      mixedPrecision: row.amp,
    },
  }));
  const contents: Contents = { sets: [], alone, skipped: [] };
  for (const row of await folder.table('interference/lucid_training_pairs.csv', lucidPairColumns)) {
    const members = [
      byRate(key(row.model_a, row.dataset_a, row.batch_a, row.amp_a), 1, row.norm_speed_a),
      byRate(key(row.model_b, row.dataset_b, row.batch_b, row.amp_b), 1, row.norm_speed_b),
    ];
    add(contents, { source, row: row.at, gpu, mode: 'unstated', members });
  }
  return contents;
}

/** Tally's pairs under MPS, mostly of training, on a GPU that its authors do not name. Throws BenchDataError. */
export async function readTally(folder: Folder): Promise<Contents> {
  const source = 'tally';
  const gpu = 'tally';
  const rows = await folder.table('interference/tally_mps_pairs.csv', {
    model_a: 'text',
    batch_a: 'number',
    amp_a: 'number',
    model_b: 'text',
    batch_b: 'number',
    amp_b: 'number',
    solo_a_its: 'number',
    co_a_its: 'number',
    solo_b_its: 'number',
    co_b_its: 'number',
  });
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  const alone = new Map<string, Alone>();
  const member = (model: string, batch: number, amp: number, solo: number, together: number): Member => {
    // Models with a compiler in parentheses are inference engines.
    const task = model.includes('(') ? 'inference' : 'training';
    const workload = workloadKey({ source, model, variant: amp === 1 ? 'amp' : '', batch, task });
    const features = {
      logMs: Math.log(1000 / solo),
      logBatch: Math.log(batch),
      mixedPrecision: amp,
      isTraining: Number(task === 'training'),
    };
    alone.set(workload, { workload, source, gpu, features });
    return byRate(workload, solo, together);
  };
  for (const row of rows) {
    const members = [
      member(row.model_a, row.batch_a, row.amp_a, row.solo_a_its, row.co_a_its),
      member(row.model_b, row.batch_b, row.amp_b, row.solo_b_its, row.co_b_its),
    ];
    add(contents, { source, row: row.at, gpu, mode: 'mps', members });
  }
  contents.alone = [...alone.values()];
  return contents;
}
