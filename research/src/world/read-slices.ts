// MIG slices of an A100: one process a slice (MISO, MIGPerf), and up to four MPS processes of one model in a slice (ParvaGPU).
import type { Contents, Folder } from './files.js';
import { add } from './read-kace.js';
import { workloadKey } from './sets.js';
import type { Alone, MeasuredSet } from './sets.js';

/** Compute slices of a whole A100. */
const allSlices = 7;

/** One process alone in a slice. */
interface SliceRow {
  workload: string;
  slices: number;
  /** Time of a batch, or its reciprocal's inverse: any unit, the same for all rows of a workload. */
  ms: number;
  at: string;
}

/** Sets of one, by the time on seven slices; workloads that were not measured there are skipped. */
function addAlone(contents: Contents, rows: readonly SliceRow[], source: string, gpu: string): void {
  const whole = new Map(rows.filter(({ slices }) => slices === allSlices).map(({ workload, ms }) => [workload, ms]));
  for (const { workload, slices, ms, at } of rows) {
    const full = whole.get(workload);
    if (full === undefined) {
      contents.skipped.push({ row: at, why: `no row of the workload on ${allSlices} slices` });
      continue;
    }
    const members = [{ workload, share: slices / allSlices, stretch: ms / full }];
    add(contents, { source, row: at, gpu, mode: 'mig', members });
  }
}

const features = (ms: number, batch: number): Record<string, number> => ({
  logMs: Math.log(ms),
  logBatch: Math.log(batch),
});

/** MISO's training jobs alone in slices of an A100 40 GB. Throws BenchDataError. */
export async function readMiso(folder: Folder): Promise<Contents> {
  const source = 'miso';
  const gpu = 'a100-40';
  const rows = await folder.table('mig/miso_a100_training_iterations.csv', {
    model: 'text',
    batch: 'number',
    compute_slices: 'number',
    median_iter_s: 'number',
  });
  const named = rows.map((row) => ({
    ...row,
    workload: workloadKey({ source, model: row.model, variant: '', batch: row.batch, task: 'training' }),
    slices: row.compute_slices,
    ms: 1000 * row.median_iter_s,
  }));
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  addAlone(contents, named, source, gpu);
  contents.alone = named
    .filter(({ slices }) => slices === allSlices)
    .map(({ workload, ms, batch }): Alone => ({ workload, source, gpu, features: features(ms, batch) }));
  return contents;
}

/** MIGPerf's inference and training alone in slices of an A100. Throws BenchDataError. */
export async function readMigperf(folder: Folder): Promise<Contents> {
  const source = 'migperf';
  const rows = await folder.table('mig/migperf_a100_latency.csv', {
    gpu: 'text',
    type: 'text',
    model: 'text',
    compute_slices: 'number',
    batch: 'number',
    seq_len: 'optionalNumber',
    latency_ms: 'number',
  });
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  for (const name of new Set(rows.map((row) => row.gpu))) {
    const gpu = name.toLowerCase().replace(/gb$/, '');
    const named = rows
      .filter((row) => row.gpu === name)
      .map((row) => ({
        at: row.at,
        batch: row.batch,
        workload: workloadKey({
          source,
          model: row.model,
          variant: row.seq_len === undefined ? '' : `sequence ${row.seq_len}`,
          batch: row.batch,
          task: row.type === 'training' ? 'training' : 'inference',
        }),
        slices: row.compute_slices,
        ms: row.latency_ms,
      }));
    addAlone(contents, named, source, gpu);
    for (const { workload, ms, batch, slices } of named)
      if (slices === allSlices) contents.alone.push({ workload, source, gpu, features: features(ms, batch) });
  }
  return contents;
}

/**
 * ParvaGPU's processes of one model in a slice of an A100 80 GB. A process' contention is against one process in the same
 * slice, its stretch that of one process against seven slices. Throws BenchDataError.
 */
export async function readParvaGpu(folder: Folder): Promise<Contents> {
  const source = 'parvagpu';
  const gpu = 'a100-80';
  const rows = await folder.table('mig/parvagpu_a100_slices.csv', {
    model: 'text',
    mig_slices: 'number',
    batch: 'number',
    processes: 'number',
    throughput_per_process_sps: 'optionalNumber',
    feasible: 'number',
  });
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  const keyOf = ({ model, batch }: { model: string; batch: number }): string =>
    workloadKey({ source, model, variant: '', batch, task: 'inference' });
  const rateAlone = new Map(
    rows
      .filter(({ processes }) => processes === 1)
      .map((row) => [`${keyOf(row)} ${row.mig_slices}`, row.throughput_per_process_sps]),
  );
  for (const row of rows) {
    const { processes, throughput_per_process_sps: rate } = row;
    const workload = keyOf(row);
    const here = rateAlone.get(`${workload} ${row.mig_slices}`);
    if (row.feasible !== 1 || rate === undefined || here === undefined) {
      contents.skipped.push({ row: row.at, why: 'the processes do not fit into the memory of the slice' });
      continue;
    }
    const full = rateAlone.get(`${workload} ${allSlices}`);
    const member = {
      workload,
      share: row.mig_slices / allSlices,
      ...(processes > 1 && { contention: here / rate }),
      ...(full !== undefined && { stretch: full / here }),
    };
    const set: MeasuredSet = {
      source,
      row: row.at,
      gpu,
      mode: 'mig',
      members: Array.from({ length: processes }, () => member),
    };
    add(contents, set);
    if (row.mig_slices === allSlices && processes === 1)
      contents.alone.push({ workload, source, gpu, features: features((1000 * row.batch) / here, row.batch) });
  }
  return contents;
}
