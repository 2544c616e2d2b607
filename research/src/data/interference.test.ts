import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { gavelSet, igniterSet, lucidSet, type InterferenceSet } from './interference.js';

// Invented numbers in the files' form.
const files = {
  'models/static_features.csv': [
    'model,family,params,flops,activation_elems',
    'gavel:LM,lstm,100,1000,10',
    'gavel:A3C,a3c,50,2000,400',
  ],
  'interference/gavel_pairs.csv': [
    'gpu,job_a,batch_a,job_b,batch_b,thr_a_solo,thr_a_co,thr_b_solo,thr_b_co,feasible',
    'v100,LM,10,A3C,0,80,40,6,4,1',
    'v100,LM,10,LM,10,80,0,80,0,0',
    'p100,LM,10,A3C,0,40,10,3,1,1',
  ],
  'interference/lucid_training_solo.csv': [
    'model,dataset,batch,amp,speed_samples_per_s,gpu_util_pct,gpu_mem_util_pct,gpu_mem_mb',
    'VGG,CIFAR-10,32,0,500,60,30,2048',
    'PPO,LunarLander,32,1,100,10,2,1024',
  ],
  'interference/lucid_training_pairs.csv': [
    'model_a,dataset_a,batch_a,amp_a,model_b,dataset_b,batch_b,amp_b,norm_speed_a,norm_speed_b',
    'VGG,CIFAR-10,32,0,PPO,LunarLander,32,1,0.8,1.25',
  ],
  'surfaces/igniter_v100_gpulet_solo.csv': [
    'model,batch,partition_pct,latency_ms,l2_util_pct,dram_util_pct',
    'alexnet,2,20,4,10,12',
    'alexnet,2,80,2,30,40',
    'vgg19,4,80,8,50,60',
    'vgg19,4,20,20,15,20',
    'alexnet,1,10,5,,',
  ],
  'interference/igniter_v100_mps_pairs.csv': [
    'model_a,batch_a,partition_a_pct,model_b,batch_b,partition_b_pct,lat_a_solo_ms,lat_a_co_ms,lat_b_solo_ms,lat_b_co_ms',
    'alexnet,2,20,vgg19,4,80,4,5,8,10',
  ],
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'bench-data-'));
  for (const [file, lines] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), `${lines.join('\n')}\n`);
  }
});
afterAll(() => rm(folder, { recursive: true }));

const slowdowns = ({ rows }: InterferenceSet): number[] => rows.map(({ slowdown }) => slowdown);
const feature = (set: InterferenceSet, row: number, name: string): number | undefined =>
  set.rows[row]?.features[set.featureNames.indexOf(name)];

test('Gavel: throughput alone over together, of one GPU type, of pairs that fit', async () => {
  const set = await gavelSet('v100', folder);
  expect(slowdowns(set)).toEqual([2, 1.5]);
  expect(set.rows.map(({ workload, neighbour }) => [workload, neighbour])).toEqual([
    ['LM/10', 'A3C/0'],
    ['A3C/0', 'LM/10'],
  ]);
  expect(feature(set, 0, 'own.logSamplesPerS')).toBeCloseTo(Math.log(800), 12);
  expect(feature(set, 0, 'other.is.A3C')).toBe(1);
  expect(slowdowns(await gavelSet('p100', folder))).toEqual([4, 3]);
});

test('Lucid: the reciprocal of the relative speed, with the utilisation of each alone', async () => {
  const set = await lucidSet(folder);
  expect(slowdowns(set)).toEqual([1.25, 0.8]);
  expect(feature(set, 0, 'own.smUtil')).toBe(0.6);
  expect(feature(set, 0, 'other.memoryGiB')).toBe(1);
  expect(feature(set, 1, 'own.mixedPrecision')).toBe(1);
});

test('iGniter: latency together over alone at the same share, or at 80 %', async () => {
  const contention = await igniterSet('contention', folder);
  expect(slowdowns(contention)).toEqual([1.25, 1.25]);
  expect(slowdowns(await igniterSet('share', folder))).toEqual([2.5, 1.25]);
  expect(feature(contention, 0, 'own.dramUtil')).toBe(0.12);
  expect(feature(contention, 0, 'own.soloMsOverThatAt80')).toBe(2);
  expect(feature(contention, 0, 'other.share')).toBe(0.8);
});

test('a pair whose sides were not measured alone is refused', async () => {
  const other = await mkdtemp(join(tmpdir(), 'bench-data-'));
  try {
    for (const [file, lines] of Object.entries(files)) {
      await mkdir(dirname(join(other, file)), { recursive: true });
      await writeFile(join(other, file), `${lines.slice(0, 2).join('\n')}\n`);
    }
    await expect(lucidSet(other)).rejects.toThrow('No measurement of PPO/LunarLander/32/1 alone');
    await expect(igniterSet('share', other)).rejects.toThrow('No measurement of alexnet, batch 2, alone at 80 %.');
    await expect(gavelSet('v100', other)).rejects.toThrow("No counts of Gavel's A3C");
  } finally {
    await rm(other, { recursive: true });
  }
});
