import { shareClasses } from '@gpuwhisk/common/gpu';
import { seededChoice } from '../load/random.js';

/** A process in a sample: what it repeats, and the percentage of the SMs that it may take. */
export interface Member {
  workload: string;
  percent: number;
}

/** A set of processes that run at once; the id says all of it, so that a run that was cut off finds what it has. */
export interface PlannedSample {
  id: string;
  members: Member[];
}

/** How the samples that are no solos are spread over the numbers of processes. */
const parts = [
  { ways: 2, part: 0.4 },
  { ways: 4, part: 0.3 },
  { ways: 6, part: 0.15 },
  { ways: 8, part: 0.15 },
];

/** Workloads of native/gpu-bench, of which nothing but the driver is asked: bound by compute, by cache and by memory. */
export const driverWorkloads = ['matmul:256', 'matmul:512', 'matmul:1024', 'matmul:2048', 'stream:8', 'stream:256'];

/** The same for the stand-in, which fills memory by hand and takes its time for it. */
export const simulatedWorkloads = ['matmul:256', 'matmul:1024', 'stream:8'];

/** Batches of inference that are measured. */
export const batches = [1, 2, 4, 8, 16, 32] as const;

/** Workloads of bench/gpu/torch_worker.py. */
export const torchWorkloads = [
  ...batches.flatMap((batch) => [`resnet50:${batch}`, `bert:${batch}`]),
  'train-resnet50:16',
  'train-bert:8',
];

const sampleOf = (members: Member[], again: number): PlannedSample => ({
  id: `${members.map(({ workload, percent }) => `${workload}@${percent}`).join('+')}#${again}`,
  members,
});

/**
 * Every workload alone at every share class, then `count` sets of 2, 4, 6 and 8 processes, drawn with the seed; each set at
 * most once. Without MPS there are no shares: all have 100.
 */
export function planSamples(
  workloads: readonly string[],
  { count, seed, shares }: { count: number; seed: number; shares: boolean },
): PlannedSample[] {
  // The whole device comes first: the others are compared with it.
  const classes = shares ? [...shareClasses].reverse() : [100 as const];
  const solos = workloads.flatMap((workload) => classes.map((percent) => sampleOf([{ workload, percent }], 0)));
  const workload = seededChoice(seed, workloads.length);
  const percent = seededChoice(seed + 1, classes.length);
  const sets = parts.flatMap(({ ways, part }) =>
    Array.from({ length: Math.round(count * part) }, (_, i) =>
      sampleOf(
        Array.from({ length: ways }, () => ({
          workload: workloads[workload()] as string,
          percent: classes[percent()] as number,
        })),
        i,
      ),
    ),
  );
  return [...solos, ...sets];
}
