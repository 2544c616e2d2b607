import { appendFile, readFile, truncate } from 'node:fs/promises';
import { shareClasses } from '@gpuwhisk/common/gpu';
import { seededChoice } from '../statistics.js';
import { WorkerError } from './gpu-worker.js';
import type { GpuWorker, Times } from './gpu-worker.js';
import type { Activity, GpuMachine } from './machine.js';

/** A process in a sample: the workload that it repeats, and its limit in percent of the SMs. */
interface Member {
  workload: string;
  percent: number;
}

/** A set of concurrent processes. Its id states all of it, so that an interrupted run finds the samples that it has. */
interface PlannedSample {
  id: string;
  members: Member[];
}

/** Division of the samples that are not solo by number of processes. */
const parts = [
  { ways: 2, part: 0.4 },
  { ways: 4, part: 0.3 },
  { ways: 6, part: 0.15 },
  { ways: 8, part: 0.15 },
];

/** Workloads of native/gpu-bench, which need only the driver: bound by compute, by cache and by memory. */
export const driverWorkloads = ['matmul:256', 'matmul:512', 'matmul:1024', 'matmul:2048', 'stream:8', 'stream:256'];

/** The workloads for the stand-in, which fills memory on the CPU and is slow at it. */
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
 * Every workload alone at every share class, then `count` different sets of 2, 4, 6 and 8 processes, drawn with the
 * seed. Without MPS all shares are 100.
 */
export function planSamples(
  workloads: readonly string[],
  { count, seed, shares }: { count: number; seed: number; shares: boolean },
): PlannedSample[] {
  // The whole device comes first, because the other samples are compared with it.
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

/** A line of a file of samples: times of each process beside the others. */
export interface Sample {
  id: string;
  device: string;
  mode: 'mps' | 'timeslice';
  simulated: boolean;
  /** `slowdown`: ratio of the median to that alone at 100 %. */
  members: (Member & Times & { slowdown?: number })[];
  activity: Activity;
  /** Reason if there are no times: a process did not fit or failed. */
  failed?: string;
}

const maxIdle = 32; // MPS accepts 48 clients, and up to eight more processes may run.

const kindOf = (workload: string): 'driver' | 'torch' => (/^(matmul|stream):/.test(workload) ? 'driver' : 'torch');

/** A process and the workload that it has loaded, or had loaded last. */
interface Loaded extends Member {
  worker: GpuWorker;
}

/** Idle processes, by most recent use. Beyond the limit the least recently used one is ended. */
export class WorkerPool {
  private idle: Loaded[] = [];

  constructor(private readonly machine: GpuMachine) {}

  /**
   * A process with the member's workload loaded; a process that has it already is preferred. Rejects if loading fails.
   */
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

/** The processes of all members. Ends them and rejects with the first failure if one fails. */
async function takeAll(pool: WorkerPool, members: readonly Member[]): Promise<Loaded[]> {
  const taken = await Promise.allSettled(members.map((member) => pool.take(member)));
  const failed = taken.find((one) => one.status === 'rejected');
  const loaded = taken.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  if (failed === undefined) return loaded;
  await Promise.all(loaded.map(({ worker }) => worker.end()));
  throw failed.reason;
}

/** Runs the processes of a sample at once. A WorkerError gives a sample with `failed`; other errors reject. */
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

/** Samples of a file by id; empty if the file does not exist. Removes an incomplete last line from the file. */
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

/** Adds each process's slowdown against the whole device alone, if that is known. */
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
