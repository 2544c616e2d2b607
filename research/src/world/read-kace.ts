// Training and inference under MPS and in time slices on a V100 (KACE).
import type { Folder, Contents } from './files.js';
import { isRatio } from './files.js';
import { workloadKey } from './sets.js';
import type { Alone, MeasuredSet, Member } from './sets.js';

const source = 'kace';
const gpu = 'v100';
/** Variant of a workload that changed since it was measured alone: no time alone holds for it. */
const changed = 'changed';

interface Row {
  model: string;
  batch: number;
  mode: string;
  percent: number;
  together: number;
  soloHere: number | undefined;
  soloWhole: number | undefined;
}

const taskOf = (mode: string): 'training' | 'inference' => (mode === 'training' ? 'training' : 'inference');

/** A process with throughputs, samples/s. Without a trusted throughput alone it is another workload than the one measured alone. */
function member({ model, batch, mode, percent, together, soloHere, soloWhole }: Row): Member {
  const isTrusted = soloWhole !== undefined;
  const workload = workloadKey({ source, model, variant: isTrusted ? '' : changed, batch, task: taskOf(mode) });
  return {
    workload,
    share: percent / 100,
    ...(soloHere !== undefined && { contention: soloHere / together }),
    ...(soloHere !== undefined && soloWhole !== undefined && { stretch: soloWhole / soloHere }),
  };
}

/** KACE's pairs with their quotas, under MPS and in time slices. Throws BenchDataError. */
export async function readKacePairs(folder: Folder): Promise<Contents> {
  const rows = await folder.table('interference/kace_v100_pairs.csv', {
    sharing: 'text',
    model_a: 'text',
    batch_a: 'number',
    mode_a: 'text',
    mps_pct_a: 'number',
    thr_a_sps: 'number',
    solo_a_same_quota_sps: 'optionalNumber',
    solo_a_full_sps: 'optionalNumber',
    model_b: 'text',
    batch_b: 'number',
    mode_b: 'text',
    mps_pct_b: 'number',
    thr_b_sps: 'number',
    solo_b_same_quota_sps: 'optionalNumber',
    solo_b_full_sps: 'optionalNumber',
  });
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  for (const row of rows) {
    if (row.sharing !== 'mps' && row.sharing !== 'timeslice') {
      contents.skipped.push({ row: row.at, why: `sharing '${row.sharing}' is neither mps nor timeslice` });
      continue;
    }
    const members = [
      member({
        ...{ model: row.model_a, batch: row.batch_a, mode: row.mode_a, percent: row.mps_pct_a },
        ...{ together: row.thr_a_sps, soloHere: row.solo_a_same_quota_sps, soloWhole: row.solo_a_full_sps },
      }),
      member({
        ...{ model: row.model_b, batch: row.batch_b, mode: row.mode_b, percent: row.mps_pct_b },
        ...{ together: row.thr_b_sps, soloHere: row.solo_b_same_quota_sps, soloWhole: row.solo_b_full_sps },
      }),
    ];
    add(contents, { source, row: row.at, gpu, mode: row.sharing, members });
  }
  return contents;
}

/** KACE's triples or quads, each process with 100 %. Throws BenchDataError. */
export async function readKaceSets(folder: Folder, size: 3 | 4): Promise<Contents> {
  const file = size === 3 ? 'interference/kace_v100_triples.csv' : 'interference/kace_v100_quads.csv';
  const numbers = Array.from({ length: size }, (_, at) => at + 1);
  const columns = Object.fromEntries(
    numbers.flatMap((at) => [
      [`model_${at}`, 'text'],
      [`batch_${at}`, 'number'],
      [`mode_${at}`, 'text'],
      [`thr_${at}_sps`, 'number'],
      [`solo_${at}_sps`, 'optionalNumber'],
    ]),
  ) as Record<string, 'text' | 'number' | 'optionalNumber'>;
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  for (const row of await folder.table(file, columns)) {
    const members = numbers.map((at) => {
      const solo = row[`solo_${at}_sps`] as number | undefined;
      return member({
        model: row[`model_${at}`] as string,
        batch: row[`batch_${at}`] as number,
        mode: row[`mode_${at}`] as string,
        percent: 100,
        together: row[`thr_${at}_sps`] as number,
        soloHere: solo,
        soloWhole: solo,
      });
    });
    add(contents, { source, row: row.at as string, gpu, mode: 'mps', members });
  }
  return contents;
}

/** KACE's workloads alone: sets of one by quota, and features of the whole device. Throws BenchDataError. */
export async function readKaceAlone(folder: Folder): Promise<Contents> {
  const rows = await folder.table('interference/kace_v100_solo.csv', {
    model: 'text',
    batch: 'number',
    mode: 'text',
    mps_pct: 'number',
    throughput_sps: 'number',
    gpu_sm_util_pct: 'number',
    gpu_mem_util_pct: 'number',
    gpu_memory_gb: 'number',
  });
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  const keyOf = ({ model, batch, mode }: (typeof rows)[number]): string =>
    workloadKey({ source, model, variant: '', batch, task: taskOf(mode) });
  const whole = new Map(rows.filter(({ mps_pct }) => mps_pct === 100).map((row) => [keyOf(row), row]));
  for (const row of rows) {
    const workload = keyOf(row);
    const full = whole.get(workload);
    if (full === undefined) {
      contents.skipped.push({ row: row.at, why: `${row.model} has no row at 100 %` });
      continue;
    }
    const stretch = full.throughput_sps / row.throughput_sps;
    add(contents, {
      source,
      row: row.at,
      gpu,
      mode: 'mps',
      members: [{ workload, share: row.mps_pct / 100, stretch }],
    });
  }
  contents.alone = [...whole].map(([workload, row]): Alone => ({
    workload,
    source,
    gpu,
    features: {
      logMs: Math.log((1000 * row.batch) / row.throughput_sps),
      logBatch: Math.log(row.batch),
      isTraining: Number(taskOf(row.mode) === 'training'),
      smUtil: row.gpu_sm_util_pct / 100,
      memoryUtil: row.gpu_mem_util_pct / 100,
      logMemoryGiB: Math.log(row.gpu_memory_gb),
    },
  }));
  return contents;
}

/** Adds a set whose ratios are possible, or names the row. */
export function add({ sets, skipped }: Contents, set: MeasuredSet): void {
  const isFine = set.members.every(
    ({ contention, stretch, share }) => isRatio(contention ?? 1) && isRatio(stretch ?? 1) && share > 0 && share <= 1,
  );
  if (isFine) sets.push(set);
  else skipped.push({ row: set.row, why: 'a time, throughput or share is not possible' });
}
