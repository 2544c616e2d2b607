// PROTEAN in the replay: the platform's placement and geometry on the platform's ledger.
import type { Device as GpuDevice, DeviceStatus, NodeStatus } from '@gpuwhisk/common/gpu';
import { seededRandom, type Random } from '@gpuwhisk/common/system/random';
import { proteanGeometry, proteanGeometryDefaults } from '@gpuwhisk/gpu/geometry/protean';
import { geometriesOf, migProfiles, placedSlots } from '@gpuwhisk/gpu/geometry/mig-profiles';
import type { SliceModel } from '@gpuwhisk/gpu/geometry/slice-model';
import { byTags, proteanPlaceDefaults } from '@gpuwhisk/gpu/place/protean';
import { knownKind, SliceSlowdowns } from '@gpuwhisk/gpu/predict/protean-slowdowns';
import { normal } from '@gpuwhisk/gpu/simulate/replay';
import { Ledger } from '@gpuwhisk/gpu/view/ledger';
import type { PlacementRequest } from '@gpuwhisk/gpu/view/account';
import type { Task } from '@gpuwhisk/gpu/view/view';
import type { Batch } from './arrivals.js';
import { idOf, nameOf, newFunction, requestOf, taskOf, type KnownFunction } from './protean-functions.js';
import type { Cluster, Device, Scheme, Served, Slice } from './serving.js';
import type { Drawn } from './setting.js';
import { deviceType, memoryOf, profiles, type ServedModel, type World } from './world.js';

/** What differs between variants of PROTEAN. */
export interface ProteanParts {
  geometry: readonly string[];
  /** Devices are cut while they serve. */
  isCut: boolean;
}

/** The paper's geometry at the beginning (section 6.1.1, figure 7). */
const startGeometry = ['4g.20gb', '2g.10gb', '1g.5gb'] as const;

/** PROTEAN as the platform has it, on a draw. */
export const protean = (drawn: Drawn): Scheme => proteanWith({ geometry: startGeometry, isCut: true }, drawn);

/** A variant of it. */
export function proteanWith({ geometry, isCut }: ProteanParts, { world }: Drawn): Scheme {
  const slowdowns = profiled(world, seededRandom(1));
  const place = byTags(slowdowns, proteanPlaceDefaults);
  const stage = proteanGeometry(proteanGeometryDefaults, modelOf(slowdowns));
  const ledger = new Ledger();
  const functions = new Map<string, KnownFunction>();
  const cutInto = new Map<Device, readonly string[]>();
  let shownSlices = new Map<Device, readonly Slice[]>();
  let bySlice = new Map<string, Slice>();
  const strict = new BatchQueue();
  const rest = new BatchQueue();
  const limits = { kept: new Set<string>(), isOpen: isOpenNode, isNew: true };
  let openNodes = new Set<string>();

  function isOpenNode(invoker: string): boolean {
    return openNodes.has(invoker);
  }

  /** Tells the ledger of devices that were cut, that came or that left. */
  function show(cluster: Cluster): void {
    let isNews = shownSlices.size === 0;
    for (const device of cluster.devices) {
      if (shownSlices.get(device) === device.slices) continue;
      isNews = true;
      ledger.heard(rowOf(device), cluster.now);
    }
    openNodes = new Set(
      cluster.devices.filter(({ slices }) => slices.some((one) => !one.isClosed)).map(({ id }) => id),
    );
    if (!isNews) return;
    shownSlices = new Map(cluster.devices.map((device) => [device, device.slices]));
    bySlice = new Map(cluster.devices.flatMap(({ slices }) => slices.map((slice) => [slice.id, slice])));
  }

  return {
    geometry,
    tickMs: 1000,
    arrived(batch) {
      (batch.isStrict ? strict : rest).push(batch);
      const name = taskOf(batch).function;
      const known = functions.get(name) ?? newFunction(batch);
      functions.set(name, known);
      known.count(batch);
    },
    dispatch(cluster) {
      show(cluster);
      if (strict.waiting.length + rest.waiting.length === 0) return;
      const view = { at: cluster.now, ledger: { ledger, isOpen: limits.isOpen, epoch: 1 }, runs: () => undefined };
      const placeIn = place.begin(view, [...strict.first(), ...rest.first()]);
      const start = ({ batch, task, request }: WaitingBatch): boolean => {
        const { placement } = placeIn(request, limits, { epoch: 1, at: cluster.now }, task);
        const slice = bySlice.get(placement?.slice ?? '');
        if (placement === undefined || slice === undefined) return false;
        const { action, namespace, isolation } = request;
        ledger.hold({ activationId: task.id, action, namespace, isolation, placement, ended: false }, Infinity);
        cluster.start(batch, slice);
        return true;
      };
      strict.start(start);
      rest.start(start);
    },
    watchesNeighbours: true,
    stopped: (batch) => ledger.release(idOf(batch)),
    ended(run) {
      ledger.release(idOf(run.batch));
      const ranMs = run.endedMs - run.startedMs;
      const task = taskOf(run.batch);
      functions.get(task.function)?.ran(ranMs);
      slowdowns.ran({
        task,
        gpu: { type: kindOf(run.profile), mode: 'mig' },
        ranMs,
        beside: besideOf(run),
      });
    },
    tick(cluster) {
      if (!isCut) return;
      for (const [device] of cutInto)
        if (device.wanted === undefined && device.slices.length > 0) cutInto.delete(device);
      const view = {
        at: cluster.now,
        ledger: { ledger, isOpen: isOpenNode, epoch: 1 },
        functions: Array.from(functions.values(), ({ state }) => state),
        devices: cluster.devices
          .filter(({ isThere }) => isThere)
          .map((device) => {
            const into = cutInto.get(device);
            return {
              ...{ id: device.id, node: device.id, type: deviceType, mode: 'mig' as const },
              geometries: geometriesOf(deviceType),
              places: device.slices.map(({ id, profile }) => ({ id, profile })),
              ...(into && { cut: { profiles: into } }),
            };
          }),
      };
      for (const { device: id, profiles: into } of stage.cuts(view)) {
        const device = cluster.devices.find((one) => one.id === id);
        if (device === undefined) continue;
        cutInto.set(device, into);
        cluster.cut(device, into);
      }
    },
  };
}

interface WaitingBatch {
  batch: Batch;
  task: Task;
  request: PlacementRequest;
}

/** A batch needs 2 GiB or more of the 320 GiB of eight GPUs. */
const mostWeighed = 256;

/** Batches that wait, in the order in which they came. */
class BatchQueue {
  readonly waiting: WaitingBatch[] = [];
  /** Waiting batches of each function. */
  private readonly counts = new Map<string, number>();

  push(batch: Batch): void {
    const task = taskOf(batch);
    this.waiting.push({ batch, task, request: requestOf(task) });
    this.counts.set(task.function, (this.counts.get(task.function) ?? 0) + 1);
  }

  /** The first ones: as many as fill all GPUs, so that the tags of a pass are those of the whole queue. */
  first(): readonly WaitingBatch[] {
    return this.waiting.length <= mostWeighed ? this.waiting : this.waiting.slice(0, mostWeighed);
  }

  /** Starts those that `start` finds a place for. If it finds none for one batch of a function, it finds none for the next. */
  start(start: (one: WaitingBatch) => boolean): void {
    const { waiting, counts } = this;
    const failed = new Set<string>();
    let lastFailed = '';
    let [at, kept] = [0, 0];
    for (; at < waiting.length && failed.size < counts.size; at += 1) {
      const one = waiting[at] as WaitingBatch;
      const { function: name } = one.task;
      if (name === lastFailed || failed.has(name) || !start(one)) {
        if (name !== lastFailed) failed.add(name);
        lastFailed = name;
        if (kept < at) waiting[kept] = one;
        kept += 1;
        continue;
      }
      const left = (counts.get(name) ?? 0) - 1;
      if (left > 0) counts.set(name, left);
      else counts.delete(name);
    }
    waiting.splice(kept, at - kept);
  }
}

/** Runs alone on each slice, and beside others on the whole GPU, that each function is profiled by before it is served. */
const aloneRuns = 2;
const besideRuns = 8;
const neighbours = 3;

/** The model after profiling, with the noise of its runs. */
function profiled({ models, noise, clientCost }: World, random: Random): SliceSlowdowns {
  const slowdowns = new SliceSlowdowns();
  const ran = (model: ServedModel, at: number, beside: readonly ServedModel[]): void => {
    const demand = beside.reduce((sum, one) => sum + (one.bandwidth[at] as number), model.bandwidth[at] as number);
    const stretch = Math.max(1, demand) * (beside.length > 0 ? 1 + clientCost : 1);
    for (const isStrict of [true, false]) {
      slowdowns.ran({
        task: { function: nameOf(model, isStrict), version: '1', arrivedAt: 0 },
        gpu: { type: kindOf(profiles[at] ?? ''), mode: 'mig' },
        ranMs: model.soloMs * (model.deficiency[at] as number) * stretch * Math.exp(noise * normal(random)),
        beside: beside.map((one) => ({ task: { function: nameOf(one, false) }, part: 1 })),
      });
    }
  };
  for (const model of models) {
    for (const [at, profile] of profiles.entries()) {
      if (memoryOf(profile) < model.memoryMiB) continue;
      for (let run = 0; run < aloneRuns; run += 1) ran(model, at, []);
    }
  }
  for (let run = 0; run < besideRuns; run += 1) {
    for (const model of models) {
      ran(
        model,
        1,
        Array.from({ length: neighbours }, () => models[random.uint32() % models.length] as ServedModel),
      );
    }
  }
  return slowdowns;
}

const kindOf = (profile: string): string => `${deviceType}:${profile}`;

/** The neighbours of a run by function, with the part of the run in which they were there. */
function besideOf({ besideMs, startedMs, endedMs }: Served): { task: { function: string }; part: number }[] {
  const parts = new Map<string, number>();
  for (const [batch, ms] of besideMs) {
    const name = taskOf(batch).function;
    parts.set(name, (parts.get(name) ?? 0) + ms / (endedMs - startedMs));
  }
  return Array.from(parts, ([name, part]) => ({ task: { function: name }, part }));
}

/** What the stage geometry asks of the learned model. */
function modelOf(slowdowns: SliceSlowdowns): SliceModel {
  return {
    deficiency(task, { slice, whole }) {
      const kinds = [slice, whole].map(({ name }) => knownKind({ type: kindOf(name), mode: 'mig' }));
      const [there = 1, alone = 1] = slowdowns.aloneOn(task, kinds).times;
      return Math.max(1, there / alone);
    },
    bandwidth: (task, { slice }) =>
      slowdowns.bandwidthsOn({ type: kindOf(slice.name), mode: 'mig' })?.of(task.function) ?? 0,
  };
}

/** A device as its agent tells of it. */
function rowOf({ id, slices, isThere }: Device): NodeStatus {
  const starts =
    placedSlots(
      deviceType,
      slices.map(({ profile }) => profile),
    ) ?? [];
  const device: GpuDevice = {
    ...{ uuid: id, index: 0, name: 'NVIDIA A100-SXM4-40GB', type: deviceType, smCount: 98, simulated: true },
    ...{ memoryMiB: wholeMiB, mode: 'mig' },
    slices: slices.map((slice, at) => {
      const { slots, smCount, memoryMiB } = entryOf(slice.profile);
      return { uuid: slice.id, profile: slice.profile, startSlot: starts[at] ?? -1, slots, smCount, memoryMiB };
    }),
  };
  const health = { state: isThere ? ('healthy' as const) : ('offline' as const), reasons: [] };
  const status: DeviceStatus = { uuid: id, at: 0, usedMemoryMiB: 0, processes: [], health };
  return { invoker: id, version: 1, at: 0, devices: [device], status: [status], residents: [] };
}

const entryOf = (profile: string): MigEntry => migProfiles[deviceType].find(({ name }) => name === profile) as MigEntry;
type MigEntry = (typeof migProfiles)[typeof deviceType][number];
const wholeMiB = entryOf('7g.40gb').memoryMiB;
