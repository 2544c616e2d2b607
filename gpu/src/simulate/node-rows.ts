// Rows of simulated nodes, as agents report theirs.
import type {
  Device,
  DeviceHealth,
  DeviceMode,
  DeviceStatus,
  NodeStatus,
  Resident,
  Share,
  Slice,
} from '@gpuwhisk/common/gpu';
import { computePart } from '../algorithms/protean/slowdowns.js';
import { neededMiB } from '../ledger/account.js';
import { memoryGiving } from '../ledger/places.js';
import { requestOfTask, shareAt } from '../view/requests.js';
import type { RunningTask } from '../view/view.js';
import { processesAmong, tasksIn } from './simulated-batches.js';

/** The SMs of a simulated device are not told; its compute slices stand for them. */
const computeSlices = 7;

/** An instance of a function that idles on a simulated GPU: it starts at once for a task of its function, share and memory. */
export interface IdleInstance {
  function: string;
  namespace: string;
  share: number;
  /** The share that it asks for on demand, fraction of the GPU; absent: `share`. */
  request?: number;
  /** Memory that it holds, MiB. An idle instance may be removed, so that this is not taken from the GPU's `memoryMiB`. */
  memoryMiB: number;
}

/** A simulated GPU, or a slice of one, with what is on it: what its node's agent reports. */
export interface ReportedPlace {
  id: string;
  /** As `gpuTypeOf` gives it. */
  type: string;
  mode: DeviceMode;
  node: string;
  /** Whether the limit of what runs can be moved below its class without a restart (kernel tokens); absent: it cannot. */
  movesShares?: boolean;
  /** The row says that it is a stand-in; absent: it does not. */
  simulated?: true;
  /** Memory that may be given away in all, MiB. */
  memoryMiB: number;
  /** Memory that each process of others holds, MiB; absent: there are none. */
  workloads?: readonly number[];
  /** `id`: of an instance that loads, and runs no task yet. */
  running: readonly (RunningTask & { id?: string })[];
  idle?: readonly (IdleInstance & { id?: string })[];
  /** The device that it is a slice of; absent: one of its own. */
  device?: string;
  /** No new work comes: it is being cut, or its node given back. */
  isClosed?: boolean;
}

/** The row of a node with these places. */
export function nodeRow(invoker: string, places: readonly ReportedPlace[], at: number): NodeStatus {
  const devices = new Map<string, { device: Device; status: DeviceStatus }>();
  for (const place of places) {
    const uuid = deviceOf(place);
    const known = devices.get(uuid);
    const { health, processes } = told(place);
    if (known === undefined) {
      const status = { uuid, at, usedMemoryMiB: 0, health, processes };
      devices.set(uuid, { device: reportedDevice(uuid, place), status });
    } else {
      known.device.slices.push(...slicesOf(place));
      known.status.processes.push(...processes);
    }
  }
  const gangs = gangsOf(places);
  const shown = [...devices.values()];
  return {
    ...{ invoker, version: 0, at },
    ...(places.every(({ movesShares }) => movesShares) && { movesShares: true }),
    devices: shown.map(({ device }) => device),
    status: shown.map(({ status }) => status),
    residents: places.flatMap((place) => residentsOf(place, gangs)),
  };
}

function deviceOf({ id, mode, device = `device of ${id}` }: ReportedPlace): string {
  return mode === 'mig' ? device : id;
}

function reportedDevice(uuid: string, place: ReportedPlace): Device {
  const { type: kind, mode, memoryMiB, simulated = false } = place;
  const [type = kind] = mode === 'mig' ? kind.split(':') : [kind];
  const sizes = { smCount: computeSlices, memoryMiB: memoryGiving(memoryMiB) };
  return { uuid, index: 0, name: type, type, ...sizes, mode, slices: slicesOf(place), simulated };
}

function slicesOf({ id, mode, type, memoryMiB }: ReportedPlace): Slice[] {
  if (mode !== 'mig') return [];
  const [, profile = ''] = type.split(':');
  const smCount = Math.round(computeSlices * computePart(type));
  return [{ uuid: id, profile, startSlot: -1, slots: 1, memoryMiB: memoryGiving(memoryMiB), smCount }];
}

function told({
  id,
  mode,
  workloads: others = [],
  isClosed = false,
}: ReportedPlace): Pick<DeviceStatus, 'health' | 'processes'> {
  const slice = mode === 'mig' ? { slice: id } : {};
  const workloads = others.map((memoryMiB, at) => ({ pid: at + 1, memoryMiB, ...slice }));
  const closed: DeviceHealth = { state: 'draining', reasons: ['it is being cut, or its node given back'] };
  return { health: isClosed ? closed : { state: 'healthy', reasons: [] }, processes: workloads };
}

/** The places of each task that runs on several. */
function gangsOf(places: readonly ReportedPlace[]): Map<string, string[]> {
  const gangs = new Map<string, string[]>();
  for (const { id, running } of places) {
    for (const { task } of running) if (task.gpus > 1) gangs.set(task.id, [...(gangs.get(task.id) ?? []), id]);
  }
  return gangs;
}

function residentsOf(place: ReportedPlace, gangs: ReadonlyMap<string, string[]>): Resident[] {
  const { id, mode, memoryMiB: capacityMiB, running, idle = [] } = place;
  const there = { device: deviceOf(place), ...(mode === 'mig' && { slice: id }) };
  return [
    ...processesAmong(running).map(({ task, share, request, instance, class: own = share, id: loading }): Resident => {
      const { action, namespace, isolation } = requestOfTask(task);
      const gang = loading === undefined ? gangs.get(task.id) : undefined;
      const memoryMiB = neededMiB(task, { capacityMiB });
      return {
        ...{ container: loading ?? instance ?? task.id, action, namespace, isolation, memoryMiB },
        activations: loading === undefined ? tasksIn(running, instance, task) : loadingWith(running, loading),
        share: shareWithin(own, share, request, memoryMiB),
        ...(loading !== undefined && { isLoading: true as const }),
        ...(gang !== undefined && { gang }),
        ...there,
      };
    }),
    ...idle.map(({ id: own, function: action, namespace, share, request, memoryMiB }, at): Resident => ({
      ...{ container: own ?? `${id} ${at}`, action, namespace, isolation: 'shared', memoryMiB, activations: [] },
      share: shareWithin(share, share, request, memoryMiB),
      ...there,
    })),
  ];
}

/** The activations of an instance that loads: its launch, and the requests that wait for it. */
function loadingWith(running: readonly RunningTask[], loading: string): string[] {
  const waiting = running.flatMap(({ task, instance }) => (instance === loading ? [task.id] : []));
  return [`launch ${loading}`, ...waiting];
}

function shareWithin(own: number, limit: number, request = limit, memoryMiB: number): Share {
  return { ...shareAt(own, memoryMiB), smRequest: Math.min(request, limit), smLimit: limit };
}
