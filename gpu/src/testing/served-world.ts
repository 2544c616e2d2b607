import type { Random } from '@gpuwhisk/common/system/random';
import { classAtOrAbove } from '../view/shares.js';
import { ArrivalCounts } from '../view/function-log.js';
import type { ReportedPlace } from '../simulate/node-rows.js';
import type { FunctionState, InstanceState, View, WorkloadState } from '../view/view.js';
import { pick } from './random-world.js';
import { profiledTask } from './fixtures.js';
import { gpusOf, viewOf } from './views.js';

const functions = [0, 1, 2, 3, 4].map((at) => `/a/f${at}`);
const namespaces = ['a', 'b', 'c'];
const idleMiB = 500;

/** The instances of a GPU of a view, as its agent would report them. */
function instancesOn({ id, running, idle = [] }: ReportedPlace, at: number): InstanceState[] {
  return [
    ...running.map(({ task, share, request = share, class: own = share }, number): InstanceState => ({
      ...{ id: `${id} run ${number}`, function: task.function, namespace: task.namespace, gpus: [id] },
      ...{
        share: { request, limit: share, class: own },
        memoryMiB: task.memoryMiB,
        state: 'running',
        tasks: [task.id],
      },
    })),
    ...idle.map(({ function: name, namespace, share, memoryMiB }, number): InstanceState => ({
      ...{ id: `${id} idle ${number}`, function: name, namespace, gpus: [id], memoryMiB, state: 'idle', tasks: [] },
      ...{ share: { request: share, limit: share, class: share }, idleSince: at - 700_000 * (number % 2) },
    })),
  ];
}

/** Adds to each view of a walk what a live platform knows besides: idle instances, workloads, functions with their arrivals. */
export class ServedWorld {
  private readonly counts = new Map<string, ArrivalCounts>();
  private readonly seen = new Set<string>();

  constructor(private readonly random: Random) {}

  /** Each call makes another view of the same GPUs and tasks. */
  view(walked: View): View {
    const { at, waiting } = walked;
    // Nodes move the shares of all of their GPUs, or of none.
    const moving = new Set(['n', 'm'].filter(() => this.random.uint32() % 2 === 0));
    const gpus = gpusOf(walked).map((gpu) => this.withInstances(gpu, moving.has(gpu.node)));
    for (const { id, function: name, namespace, arrivedAt } of waiting) {
      if (this.seen.has(id)) continue;
      this.seen.add(id);
      this.countsOf(`${namespace} ${name}`).add(arrivedAt);
    }
    return viewOf({
      ...{ at, gpus, waiting },
      instances: gpus.flatMap((gpu) => instancesOn(gpu, at)),
      functions: namespaces.flatMap((namespace) => functions.map((name) => this.functionOf(name, namespace, at))),
      workloads: gpus.filter(({ mode }) => mode === 'mps').flatMap((gpu) => this.workloadsOn(gpu, at)),
    });
  }

  private withInstances(gpu: ReportedPlace, movesShares: boolean): ReportedPlace {
    const { random } = this;
    const running = gpu.running.map((one) => ({
      ...{ ...one, instance: `of ${one.task.id}`, class: classAtOrAbove(one.share) / 100 },
    }));
    const heldMiB = running.reduce((sum, { task }) => sum + (task.memoryMiB > 0 ? task.memoryMiB : gpu.memoryMiB), 0);
    const most = Math.min(2, Math.floor((gpu.memoryMiB - heldMiB) / idleMiB));
    const idle = Array.from({ length: Math.max(0, Math.min(most, random.uint32() % 4)) }, () => ({
      ...{ function: pick(random, functions), namespace: pick(random, namespaces), memoryMiB: idleMiB },
      share: pick(random, [0.3, 0.5, 1]),
    }));
    return { ...gpu, running, idle, ...(movesShares && { movesShares }) };
  }

  private functionOf(name: string, namespace: string, at: number): FunctionState {
    const task = profiledTask(`next of ${namespace} ${name}`, 3000, 0.4, { function: name, namespace, arrivedAt: at });
    const forecast = { requests: name.length + namespace.charCodeAt(0) - 90, active: 0.9 };
    return { task, arrivals: this.countsOf(`${namespace} ${name}`), runMs: 2000, forecast };
  }

  private workloadsOn({ id, node }: ReportedPlace, at: number): WorkloadState[] {
    if (this.random.uint32() % 3 > 0) return [];
    const measured = pick(this.random, [0.05, 0.2, 0.4]);
    return [{ id: `w ${id}`, node, device: id, tolerated: 0.15, measured, reportedAt: at, features: { smUtil: 0.4 } }];
  }

  private countsOf(key: string): ArrivalCounts {
    const known = this.counts.get(key) ?? new ArrivalCounts();
    this.counts.set(key, known);
    return known;
  }
}
