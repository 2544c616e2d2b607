// Measures processes beside each other, and keeps a line of each sample.
import type { Measurement } from '../bench.js';
import { meanOf } from '../statistics.js';
import { WorkerError, type GpuWorker } from './gpu-worker.js';
import type { Activity, GpuMachine, ShareMode } from './machine.js';
import { planSamples, sharingOf, type Member, type PlannedSample } from './plan.js';
import { addSample, resumeSamples, withSlowdowns, type Sample } from './sample-file.js';
import { isTraining, kindOf, type Mix } from './workloads.js';

const maxIdle = 16; // Idle processes keep their inference workloads in the device's memory; MPS accepts 48 clients.

/** A process and the workload that it has loaded, if any. */
interface Loaded {
  kind: 'driver' | 'torch';
  mode: ShareMode;
  percent: number;
  workload?: string;
  worker: GpuWorker;
}

/** Idle processes, by most recent use. Beyond the limit the least recently used one is ended. */
class WorkerPool {
  private idle: Loaded[] = [];

  constructor(private readonly machine: GpuMachine) {}

  /**
   * Processes with the members' workloads loaded; processes that have them already are preferred. If one does not load, it
   * is tried again without idle processes, which may have its memory; if that fails, all are ended and it rejects.
   */
  async takeAll({ mode, members }: PlannedSample): Promise<Loaded[]> {
    const first = await this.tryAll(mode, members);
    if (first.problem === undefined) return first.loaded;
    await this.close();
    const second = await this.tryAll(mode, members);
    if (second.problem === undefined) return second.loaded;
    throw second.problem;
  }

  /** Training is unloaded, since its memory would be missing to the next sample. */
  async giveBack(loaded: readonly Loaded[]): Promise<void> {
    const training = loaded.filter(({ workload = '' }) => isTraining(workload, this.machine.simulated));
    this.idle.push(...loaded);
    for (const one of training) {
      delete one.workload;
      await one.worker.unload();
    }
    while (this.idle.length > maxIdle) await this.idle.shift()?.worker.end();
  }

  async close(): Promise<void> {
    await endAll(this.idle.splice(0));
  }

  private async tryAll(mode: ShareMode, members: readonly Member[]): Promise<{ loaded: Loaded[]; problem?: Error }> {
    const taken = await Promise.allSettled(members.map((member) => this.take(mode, member)));
    const failed = taken.find((one) => one.status === 'rejected');
    const loaded = taken.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    if (failed === undefined) return { loaded };
    await endAll(loaded);
    return { loaded: [], problem: failed.reason as Error };
  }

  private async take(mode: ShareMode, { workload, percent }: Member): Promise<Loaded> {
    const kind = kindOf(workload);
    const fits = (one: Loaded): boolean => one.mode === mode && one.percent === percent && one.kind === kind;
    const same = this.idle.findIndex((one) => fits(one) && one.workload === workload);
    const at = same >= 0 ? same : this.idle.findIndex(fits);
    const [found] = at < 0 ? [] : this.idle.splice(at, 1);
    if (found?.workload === workload) return found;
    const worker = found?.worker ?? (await this.machine.start(kind, { mode, percent }));
    try {
      await worker.load(workload);
    } catch (error) {
      await worker.end();
      throw error;
    }
    return { kind, workload, percent, mode, worker };
  }
}

async function endAll(loaded: readonly Loaded[]): Promise<void> {
  await Promise.all(loaded.map(({ worker }) => worker.end()));
}

interface Given {
  machine: GpuMachine;
  mix: Mix;
  /** Number of sets. */
  count: number;
  seed: number;
  /** Time of one sample. */
  seconds: number;
  /** File of samples; a later run continues from it. */
  path: string;
  /**
   * No sample is kept after `signal` is aborted, and none is begun that would probably not end before: a client of MPS that
   * is killed may take the others along.
   */
  end?: { signal: AbortSignal; leftMs(): number };
  look(): Promise<Activity>;
  say(line: string): void;
}

/** Runs the processes of a sample at once. A WorkerError gives a sample with `failed`; other errors reject. */
async function measureSample(planned: PlannedSample, pool: WorkerPool, given: Given): Promise<Sample> {
  const { machine, seconds, look } = given;
  const { id, mode } = planned;
  const sample: Sample = { id, device: machine.device, mode, simulated: machine.simulated, members: [], activity: {} };
  let loaded: Loaded[] = [];
  try {
    loaded = await pool.takeAll(planned);
    await look();
    const times = await Promise.all(loaded.map(({ worker }) => worker.run(seconds)));
    sample.activity = await look();
    await pool.giveBack(loaded);
    sample.members = planned.members.flatMap((member, i) => (times[i] ? [{ ...member, ...times[i] }] : []));
  } catch (error) {
    await endAll(loaded);
    if (!(error instanceof WorkerError)) throw error;
    sample.failed = error.message;
  }
  return sample;
}

/** Samples of a plan: those of its file, and those that were measured now. */
export interface CoLocation {
  /** All of the plan that are known, in its order. */
  samples: Sample[];
  planned: number;
  /** How many were measured now. */
  added: number;
}

/** How many samples the time of the next one is expected from: it takes at most as long as these. */
const expectedFrom = 8;

/** Measures the missing samples of the plan, until all are there or the end comes, and stores them in their file. */
export async function measurePlan(given: Given): Promise<CoLocation> {
  const { machine, mix, count, seed, path, end, say } = given;
  const plan = planSamples(mix, { count, seed, mps: machine.mps });
  const known = await resumeSamples(path);
  const pool = new WorkerPool(machine);
  const tookMs: number[] = [];
  try {
    for (const [i, planned] of plan.entries()) {
      if (known.has(planned.id)) continue;
      if (end && end.leftMs() < Math.max(0, ...tookMs.slice(-expectedFrom))) break;
      const startMs = performance.now();
      const measured = await measureSample(planned, pool, given);
      if (end?.signal.aborted) break; // Its processes may have been killed.
      tookMs.push(performance.now() - startMs);
      // Later samples are compared with solo samples; a solo sample is compared with itself.
      known.set(planned.id, measured);
      const sample = withSlowdowns(measured, known);
      known.set(planned.id, sample);
      await addSample(path, sample);
      if (tookMs.length % 50 === 0) say(`  ${i + 1} of ${plan.length} samples`);
    }
  } finally {
    await pool.close();
  }
  return { samples: plan.flatMap(({ id }) => known.get(id) ?? []), planned: plan.length, added: tookMs.length };
}

/** Numbers of samples, and mean slowdowns by size of a set and, for training beside inference, by sharing. */
export function coLocationMetrics({ samples, added }: CoLocation): Measurement[] {
  const means = (groups: ReadonlyMap<string, readonly number[]>): Measurement[] =>
    [...groups].map(([name, slowdowns]) => ({ name, value: meanOf(slowdowns) }));
  const [bySize, bySharing] = [new Map<string, number[]>(), new Map<string, number[]>()];
  const add = (groups: Map<string, number[]>, name: string, slowdown: number | undefined): void => {
    if (slowdown !== undefined) groups.set(name, [...(groups.get(name) ?? []), slowdown]);
  };
  for (const { mode, members, simulated } of samples) {
    const [first, second] = members;
    if (first === undefined || second === undefined) continue;
    const sharing = isTraining(first.workload, simulated) ? sharingOf(mode, first.percent, second.percent) : undefined;
    for (const { slowdown } of members) add(bySize, `slowdown.${members.length}way`, slowdown);
    if (sharing === undefined) continue;
    add(bySharing, `slowdown.${sharing.name}.training`, first.slowdown);
    for (const { slowdown } of members.slice(1)) add(bySharing, `slowdown.${sharing.name}.inference`, slowdown);
  }
  return [
    { name: 'colocationSamples', value: samples.length },
    { name: 'newSamples', value: added },
    { name: 'failedSamples', value: samples.filter(({ failed }) => failed !== undefined).length },
    { name: 'samplesWithActivity', value: samples.filter(({ activity }) => activity.smActivity !== undefined).length },
    ...means(bySize),
    ...means(bySharing),
  ];
}
