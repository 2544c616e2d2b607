// A folder of measured sets whose contention is known: 1 + u·Σ v of the others, where quotas overlap.
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** A planted workload; its time alone tells sensitivity and pressure. */
export interface Planted {
  model: string;
  ms: number;
}

/** Eight models, from short to long kernels. */
export const planted: readonly Planted[] = Array.from({ length: 8 }, (_, at) => ({
  model: `model${at}`,
  ms: 10 * 1.5 ** at,
}));

/** Contention of a workload beside others with 100 % each. Long ones press more and suffer less. */
export function plantedContention({ ms }: Planted, others: readonly Planted[]): number {
  return 1 + others.reduce((sum, other) => sum + 0.8 * Math.sqrt(other.ms / ms), 0);
}

const batch = 8;
const rate = ({ ms }: Planted): number => (1000 * batch) / ms;

/** Files in KACE's form, by path. */
export function plantedFiles(): Record<string, string[]> {
  const pairs: string[] = [];
  const triples: string[] = [];
  const quads: string[] = [];
  for (const [i, a] of planted.entries()) {
    for (const [j, b] of planted.entries()) {
      if (j < i) continue;
      for (const percent of [100, 50]) {
        const [ofA, ofB] = percent === 100 ? [plantedContention(a, [b]), plantedContention(b, [a])] : [1.02, 1.02];
        // Half of the device is half as fast.
        const here = percent / 100;
        const side = (one: Planted, contention: number): string =>
          [(here * rate(one)) / contention, here * rate(one), rate(one), contention, contention / here].join(',');
        pairs.push(
          `1,mps,${a.model},${batch},inference,${percent},${side(a, ofA)},${b.model},${batch},inference,${percent},${side(b, ofB)}`,
        );
      }
      const c = planted[(i + 2 * j) % planted.length] as Planted;
      const d = planted[(3 * i + j + 1) % planted.length] as Planted;
      triples.push(`1,${setCells([a, b, c])}`);
      quads.push(`1,${setCells([a, b, c, d])}`);
    }
  }
  const solo = planted.flatMap((one) =>
    [25, 50, 100].map((percent) => `${one.model},${batch},inference,${percent},${(percent / 100) * rate(one)},50,20,2`),
  );
  const setHeader = (size: number): string =>
    [
      'campaign',
      ...Array.from({ length: size }, (_, at) =>
        ['model', 'batch', 'mode', 'thr', 'solo', 'slowdown']
          .map((name) => `${name}_${at + 1}${name === 'thr' || name === 'solo' ? '_sps' : ''}`)
          .join(','),
      ),
    ].join(',');
  const pairSide = (side: string): string =>
    [
      `thr_${side}_sps`,
      `solo_${side}_same_quota_sps`,
      `solo_${side}_full_sps`,
      `slowdown_${side}_vs_same_quota`,
      `slowdown_${side}_vs_full`,
    ].join(',');
  return {
    'interference/kace_v100_pairs.csv': [
      `campaign,sharing,model_a,batch_a,mode_a,mps_pct_a,${pairSide('a')},model_b,batch_b,mode_b,mps_pct_b,${pairSide('b')}`,
      ...pairs,
    ],
    'interference/kace_v100_triples.csv': [setHeader(3), ...triples],
    'interference/kace_v100_quads.csv': [setHeader(4), ...quads],
    'interference/kace_v100_solo.csv': [
      'model,batch,mode,mps_pct,throughput_sps,gpu_sm_util_pct,gpu_mem_util_pct,gpu_memory_gb',
      ...solo,
    ],
  };
}

/**
 * Slices of one device in ParvaGPU's form: each further process of a model costs the others a tenth, and speed is proportional to
 * the slices. Four processes do not fit into one slice.
 */
export function plantedSlices(): Record<string, string[]> {
  const rows = planted.flatMap((one) =>
    [1, 2, 3, 4, 7].flatMap((slices) =>
      [1, 2, 3, 4].map((processes) => {
        const perS = (rate(one) * slices) / 7 / (1 + 0.1 * (processes - 1));
        const [told, fits] = slices === 1 && processes === 4 ? ['', 0] : [String(perS), 1];
        return `${one.model},${slices},${batch},${processes},${told},${fits}`;
      }),
    ),
  );
  return {
    'mig/parvagpu_a100_slices.csv': ['model,mig_slices,batch,processes,throughput_per_process_sps,feasible', ...rows],
  };
}

function setCells(members: readonly Planted[]): string {
  return members
    .map((one, at) => {
      const contention = plantedContention(
        one,
        members.filter((_, other) => other !== at),
      );
      return [one.model, batch, 'inference', rate(one) / contention, rate(one), contention].join(',');
    })
    .join(',');
}

/** Writes files into a folder, each with an end to its last line. */
export async function writeFiles(folder: string, files: Readonly<Record<string, readonly string[]>>): Promise<void> {
  for (const [path, lines] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), `${lines.join('\n')}\n`);
  }
}
