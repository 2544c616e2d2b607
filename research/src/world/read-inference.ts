// Inference: pairs with quotas on a V100 (iGniter), whole inferences together on an A100 (Abacus), alone by quota (Dilu).
import { igniterPairColumns } from '@gpuwhisk/bench/data/csv';
import { igniterColumns } from '../data/interference.js';
import type { Contents, Folder } from './files.js';
import { placed } from './files.js';
import { add } from './read-kace.js';
import { workloadKey } from './sets.js';
import type { Alone, Member } from './sets.js';

/** iGniter's models alone by quota and its pairs with quotas that add up to 100 %, under MPS on a V100. Throws BenchDataError. */
export async function readIgniterSets(folder: Folder): Promise<Contents> {
  const source = 'igniter';
  const gpu = 'v100';
  const key = (model: string, batch: number): string =>
    workloadKey({ source, model, variant: '', batch, task: 'inference' });
  const solo = await folder.table('surfaces/igniter_v100_gpulet_solo.csv', igniterColumns);
  const at = (model: string, batch: number, percent: number): string => `${key(model, batch)} ${percent}`;
  const soloAt = new Map(solo.map((row) => [at(row.model, row.batch, row.partition_pct), row]));
  // Only batch 1 was measured at 100 %; the time at 80 % stands for the whole device at other batches.
  const wholeMs = (model: string, batch: number): number | undefined =>
    (soloAt.get(at(model, batch, 100)) ?? soloAt.get(at(model, batch, 80)))?.latency_ms;
  const stretchOf = (model: string, batch: number, percent: number, ms: number): number | undefined => {
    const whole = soloAt.has(at(model, batch, 100)) || percent <= 80 ? wholeMs(model, batch) : undefined;
    return whole === undefined ? undefined : ms / whole;
  };
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  for (const row of solo) {
    const stretch = stretchOf(row.model, row.batch, row.partition_pct, row.latency_ms);
    if (stretch === undefined) {
      contents.skipped.push({ row: row.at, why: `${row.model}, batch ${row.batch}, has no row at 80 or 100 %` });
      continue;
    }
    const workload = key(row.model, row.batch);
    add(contents, {
      source,
      row: row.at,
      gpu,
      mode: 'mps',
      members: [{ workload, share: row.partition_pct / 100, stretch }],
    });
    // Traffic was measured from 20 to 80 %; the largest share is the closest to the whole device.
    if (row.partition_pct !== 80 || row.l2_util_pct === undefined || row.dram_util_pct === undefined) continue;
    contents.alone.push({
      workload,
      source,
      gpu,
      features: {
        logMs: Math.log(row.latency_ms),
        logBatch: Math.log(row.batch),
        l2Util: row.l2_util_pct / 100,
        memoryUtil: row.dram_util_pct / 100,
      },
    });
  }
  const member = (model: string, batch: number, percent: number, soloMs: number, togetherMs: number): Member => {
    const stretch = stretchOf(model, batch, percent, soloMs);
    return {
      workload: key(model, batch),
      share: percent / 100,
      contention: togetherMs / soloMs,
      ...(stretch !== undefined && { stretch }),
    };
  };
  for (const row of await folder.table('interference/igniter_v100_mps_pairs.csv', igniterPairColumns)) {
    const members = [
      member(row.model_a, row.batch_a, row.partition_a_pct, row.lat_a_solo_ms, row.lat_a_co_ms),
      member(row.model_b, row.batch_b, row.partition_b_pct, row.lat_b_solo_ms, row.lat_b_co_ms),
    ];
    add(contents, { source, row: row.at, gpu, mode: 'mps', members });
  }
  return contents;
}

/**
 * Abacus' whole inferences that start together under MPS, 100 % each: makespans only, so its members have no contention. Parts
 * of inferences, and inferences in slices, are skipped. Throws BenchDataError.
 */
export async function readAbacus(folder: Folder): Promise<Contents> {
  const source = 'abacus';
  const file = 'interference/abacus_a100_pairs.csv';
  const text = await folder.text(file);
  const size = (text.split('\n', 1)[0] ?? '').split(',').filter((name) => /^model_\d$/.test(name)).length;
  const numbers = Array.from({ length: size }, (_, index) => index + 1);
  const columns = {
    device: 'text',
    processes: 'number',
    makespan_median_us: 'number',
    all_models_whole: 'number',
    max_solo_us: 'number',
    sum_solo_us: 'number',
    ...Object.fromEntries(
      numbers.flatMap((at) => [
        [`model_${at}`, 'optionalText'],
        [`batch_${at}`, 'optionalNumber'],
        [`seq_${at}`, 'optionalNumber'],
      ]),
    ),
  } as Record<string, 'text' | 'number' | 'optionalText' | 'optionalNumber'>;
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  for (const row of placed(text, columns, file)) {
    if (row['device'] !== 'A100 40GB whole' || row['all_models_whole'] !== 1) {
      contents.skipped.push({ row: row.at, why: 'not whole inferences on the whole device' });
      continue;
    }
    const members = numbers.slice(0, row['processes'] as number).map((at): Member => ({
      workload: workloadKey({
        source,
        model: String(row[`model_${at}`]),
        variant: row[`seq_${at}`] === 0 ? '' : `sequence ${row[`seq_${at}`]}`,
        batch: row[`batch_${at}`] as number,
        task: 'inference',
      }),
      share: 1,
    }));
    const [makespan, longest, sum] = ['makespan_median_us', 'max_solo_us', 'sum_solo_us'].map(
      (name) => row[name] as number,
    ) as [number, number, number];
    add(contents, {
      ...{ source, row: row.at, gpu: 'a100-40', mode: 'mps', members },
      makespan: { overLongest: makespan / longest, overSum: makespan / sum },
    });
  }
  return contents;
}

/** Dilu's models alone by MPS quota on an A100. Throws BenchDataError. */
export async function readDilu(folder: Folder): Promise<Contents> {
  const source = 'dilu';
  const gpu = 'a100-40';
  const rows = await folder.table('surfaces/dilu_a100_inference.csv', {
    model: 'text',
    batch: 'number',
    sm_pct: 'number',
    latency_s: 'number',
  });
  const keyOf = ({ model, batch }: { model: string; batch: number }): string =>
    workloadKey({ source, model, variant: '', batch, task: 'inference' });
  const full = new Map(rows.filter(({ sm_pct }) => sm_pct === 100).map((row) => [keyOf(row), row]));
  const contents: Contents = { sets: [], alone: [], skipped: [] };
  for (const row of rows) {
    const workload = keyOf(row);
    const atFull = full.get(workload);
    if (atFull === undefined) {
      contents.skipped.push({ row: row.at, why: `${row.model}, batch ${row.batch}, has no row at 100 %` });
      continue;
    }
    const stretch = row.latency_s / atFull.latency_s;
    add(contents, { source, row: row.at, gpu, mode: 'mps', members: [{ workload, share: row.sm_pct / 100, stretch }] });
  }
  contents.alone = [...full].map(([workload, row]): Alone => ({
    workload,
    source,
    gpu,
    features: { logMs: Math.log(1000 * row.latency_s), logBatch: Math.log(row.batch) },
  }));
  return contents;
}
