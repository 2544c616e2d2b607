import { appendFile, readFile, truncate } from 'node:fs/promises';
import { shareClasses } from '@gpuwhisk/common/gpu';
import { seededChoice } from '../statistics.js';
import { WorkerError } from './gpu-worker.js';
import type { GpuWorker, Times } from './gpu-worker.js';
import type { Activity, GpuMachine } from './machine.js';

/** A process in a sample: what it repeats, and the percentage of the SMs that it may take. */
interface Member {
  workload: string;
  percent: number;
}

/** A set of processes that run at once; the id says all of it, so that a run that was cut off finds what it has. */
interface PlannedSample {
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
const batches = [1, 2, 4, 8, 16, 32] as const;

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

/** A line of a file of samples: what each process took beside the others. */
export interface Sample {
  id: string;
  device: string;
  mode: 'mps' | 'timeslice';
  simulated: boolean;
  /** `slowdown`: against alone at 100 %, by the medians. */
  members: (Member & Times & { slowdown?: number })[];
  activity: Activity;
  /** Why there are no times: it did not fit, or a process failed. */
  failed?: string;
}

const maxIdle = 32; // MPS takes 48 clients, and eight more may run.

const kindOf = (workload: string): 'driver' | 'torch' => (/^(matmul|stream):/.test(workload) ? 'driver' : 'torch');

/** A process with a workload in it, or that had one. */
interface Loaded extends Member {
  worker: GpuWorker;
}

/** Processes that wait for work. The least recently used one ends where there are too many. */
export class WorkerPool {
  private idle: Loaded[] = [];

  constructor(private readonly machine: GpuMachine) {}

  /** One that has the member's workload ready; best one that has had it. Rejects where that cannot be. */
  async take({ workload, percent }: Member): Promise<Loaded> {
    const fits = (one: Loaded): boolean => one.percent === percent && kindOf(one.workload) === kindOf(workload);
    const same = this.idle.findIndex((one) => fits(one) && one.workload === workload);
    const at = same >= 0 ? same : this.idle.findIndex(fits);
    const [found] = at < 0 ? [] : this.idle.splice(at, 1);
    if (found?.workload === workload) return found;
    const worker = found?.worker ?? (await this.machine.start(kindOf(workload), percent));
    try {
      await worker.load(workload);
    } catch (error) {
      await worker.end();
      throw error;
    }
    return { workload, percent, worker };
  }

  async giveBack(loaded: Loaded): Promise<void> {
    this.idle.push(loaded);
    while (this.idle.length > maxIdle) await this.idle.shift()?.worker.end();
  }

  async close(): Promise<void> {
    await Promise.all(this.idle.splice(0).map(({ worker }) => worker.end()));
  }
}

/** All of the members' processes, or the first failure, with none left behind. */
async function takeAll(pool: WorkerPool, members: readonly Member[]): Promise<Loaded[]> {
  const taken = await Promise.allSettled(members.map((member) => pool.take(member)));
  const failed = taken.find((one) => one.status === 'rejected');
  const loaded = taken.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  if (failed === undefined) return loaded;
  await Promise.all(loaded.map(({ worker }) => worker.end()));
  throw failed.reason;
}

/** Runs the processes of a sample at once. What fails is a sample that says so, unless it is a mistake of ours. */
export async function measureSample(
  planned: PlannedSample,
  given: { machine: GpuMachine; pool: WorkerPool; seconds: number; look: () => Promise<Activity> },
): Promise<Sample> {
  const { machine, pool, seconds, look } = given;
  let loaded: Loaded[] = [];
  const sample: Sample = {
    id: planned.id,
    device: machine.device,
    mode: machine.mps ? 'mps' : 'timeslice',
    simulated: machine.simulated,
    members: [],
    activity: {},
  };
  try {
    loaded = await takeAll(pool, planned.members);
    await look();
    const times = await Promise.all(loaded.map(({ worker }) => worker.run(seconds)));
    sample.activity = await look();
    sample.members = planned.members.map((member, i) => ({ ...member, ...(times[i] as Times) }));
    for (const one of loaded) await pool.giveBack(one);
  } catch (error) {
    await Promise.all(loaded.map(({ worker }) => worker.end()));
    if (!(error instanceof WorkerError)) throw error;
    sample.failed = error.message;
  }
  return sample;
}

/** Samples of a file, by id; none where it does not exist. A last line that was cut off is removed from it. */
export async function readSamples(path: string): Promise<Map<string, Sample>> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return new Map();
    throw error;
  }
  const whole = text.slice(0, text.lastIndexOf('\n') + 1);
  if (whole.length < text.length) await truncate(path, Buffer.byteLength(whole));
  const samples = whole
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Sample);
  return new Map(samples.map((sample) => [sample.id, sample]));
}

/** Adds to each process how much slower it was than alone on the whole device, where that is known. */
export function withSlowdowns(sample: Sample, known: ReadonlyMap<string, Sample>): Sample {
  const members = sample.members.map((member) => {
    const [solo] = known.get(`${member.workload}@100#0`)?.members ?? [];
    return solo === undefined ? member : { ...member, slowdown: member.medianMs / solo.medianMs };
  });
  return { ...sample, members };
}

/** Adds a sample to a file, as a line. */
export const addSample = (path: string, sample: Sample): Promise<void> =>
  appendFile(path, `${JSON.stringify(sample)}\n`);
