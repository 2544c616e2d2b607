// Batches on GPUs that are cut into slices, in virtual time: an event for each batch that can start, that ends, and that is moved.
import { placedSlots, sliceChanges } from '@gpuwhisk/gpu/geometry/mig-profiles';
import type { Batch } from './arrivals.js';
import { deviceType, memoryOf, profileAt, type World } from './world.js';

/** A batch that runs. */
export interface Run {
  batch: Batch;
  /** Resource deficiency factor, and fractional bandwidth requirement, as it runs here. */
  deficiency: number;
  bandwidth: number;
  startedMs: number;
  /** Time alone on 7g that is left, ms. */
  leftMs: number;
  /** Time for each ms of it, as things are. */
  slowdown: number;
  /** Time so far by its cause, ms: its time alone on 7g, the smaller slice, and neighbours. */
  aloneMs: number;
  deficiencyMs: number;
  interferenceMs: number;
  /** Time beside others, ms, by their batch; empty unless the scheme watches it. */
  besideMs: Map<Batch, number>;
}

const noneBeside = new Map<Batch, number>();

/** A batch that has run. Times in ms of the replay. */
export interface Served extends Pick<
  Run,
  'batch' | 'startedMs' | 'aloneMs' | 'deficiencyMs' | 'interferenceMs' | 'besideMs'
> {
  endedMs: number;
  profile: string;
}

/** A slice of a device; 7g is the whole device. */
export interface Slice {
  id: string;
  device: Device;
  profile: string;
  memoryMiB: number;
  freeMiB: number;
  runs: Run[];
  /** It gets no more batches. */
  isClosed: boolean;
  /** When its runs were last counted, and when the next of them ends, ms. */
  countedMs: number;
  endsMs: number;
  /** Batches that a scheme has assigned to it and that have not started. */
  queue: Batch[];
}

export interface Device {
  id: string;
  slices: readonly Slice[];
  /** Profiles that it is to be cut into; absent: it stays as it is. */
  wanted: readonly string[] | undefined;
  /** Its machine is there. */
  isThere: boolean;
  running: number;
  busySinceMs: number;
}

/** Sums over a replay. */
export interface Totals {
  /** Time of devices on which something ran, and of devices that were there, ms. */
  busyMs: number;
  deviceMs: number;
  /** Memory in use over time, and memory of devices over time, MiB ms. */
  usedMiBMs: number;
  deviceMiBMs: number;
  /** Cuts of devices, and batches that were stopped since their machine left. */
  cuts: number;
  stopped: number;
}

/** What decides where batches run. */
export interface Scheme {
  /** Profiles of each device at the beginning. */
  geometry: readonly string[];
  /** A batch can start. It may be one that was stopped. */
  arrived(batch: Batch, cluster: Cluster): void;
  /** Something has changed: starts what can start. */
  dispatch(cluster: Cluster): void;
  /** A run has ended on a slice, or was stopped since its machine left. */
  ended?(run: Served): void;
  stopped?(batch: Batch): void;
  /** Whether runs count their time beside each other. */
  watchesNeighbours?: boolean;
  /** Called so often, ms, with `tick`. */
  tickMs?: number;
  tick?(cluster: Cluster): void;
}

/** How long a cut lasts once the slices are empty, ms (paper, section 4.4). */
export const cutMs = 2000;

/** A change from outside at a time, ms. */
export interface Incident {
  atMs: number;
  act(cluster: Cluster): void;
}

/** The GPUs of a replay. */
export class Cluster {
  now = 0;
  readonly devices: Device[];
  readonly served: Served[] = [];
  readonly totals: Totals = { busyMs: 0, deviceMs: 0, usedMiBMs: 0, deviceMiBMs: 0, cuts: 0, stopped: 0 };
  private later: { atMs: number; act: () => void }[] = [];
  private made = 0;

  constructor(
    private readonly world: Pick<World, 'clientCost'>,
    private readonly scheme: Scheme,
    count: number,
  ) {
    this.devices = Array.from({ length: count }, (_, at) => ({
      id: `gpu${at}`,
      slices: [],
      wanted: undefined,
      isThere: true,
      running: 0,
      busySinceMs: 0,
    }));
    for (const device of this.devices) device.slices = scheme.geometry.map((profile) => this.sliceOf(device, profile));
  }

  /**
   * Starts a batch on a slice; `cap`: by what factor it alone is slower since it may use part of the SMs only (absent: 1). Throws Error
   * if the slice is closed or lacks the memory.
   */
  start(batch: Batch, slice: Slice, cap = 1): void {
    const { model, soloMs } = batch;
    if (slice.isClosed || slice.freeMiB < model.memoryMiB)
      throw new Error(`batch ${batch.id} cannot start on ${slice.id}`);
    const at = profileAt(slice.profile);
    this.count(slice);
    const { device } = slice;
    if (device.running === 0) device.busySinceMs = this.now;
    device.running += 1;
    slice.freeMiB -= model.memoryMiB;
    slice.runs.push({
      batch,
      startedMs: this.now,
      leftMs: soloMs,
      slowdown: 1,
      aloneMs: 0,
      deficiencyMs: 0,
      interferenceMs: 0,
      besideMs: this.scheme.watchesNeighbours === true ? new Map<Batch, number>() : noneBeside,
      deficiency: (model.deficiency[at] as number) * cap,
      bandwidth: (model.bandwidth[at] as number) / cap,
    });
    this.rate(slice);
  }

  /**
   * Cuts a device into other profiles once the slices that go are empty; until then and while it is cut, none of its slices gets
   * batches, as the platform's agents have it. Throws RangeError if the profiles do not fit on it.
   */
  cut(device: Device, wanted: readonly string[]): void {
    if (placedSlots(deviceType, wanted) === undefined) throw new RangeError(`cannot cut into ${wanted.join(', ')}`);
    device.wanted = wanted;
    this.cordon(device);
    this.cutIfEmpty(device);
  }

  /** No more batches go to a device: it is to be cut, or its machine leaves. */
  cordon(device: Device): void {
    for (const slice of device.slices) slice.isClosed = true;
  }

  /** The machine of a device leaves: its runs and its assigned batches begin again elsewhere. */
  lose(device: Device): void {
    device.isThere = false;
    const wasBusy = device.running > 0;
    for (const slice of device.slices) {
      this.count(slice);
      slice.isClosed = true;
      const { runs, queue } = slice;
      slice.runs = [];
      slice.queue = [];
      this.totals.stopped += runs.length;
      device.running -= runs.length;
      for (const { batch } of runs) this.scheme.stopped?.(batch);
      for (const batch of [...runs.map((run) => run.batch), ...queue]) this.scheme.arrived(batch, this);
    }
    if (wasBusy) this.totals.busyMs += this.now - device.busySinceMs;
    device.slices = [];
    device.wanted = undefined;
  }

  /** A machine comes in the place of one that has left. */
  come(device: Device): void {
    device.isThere = true;
    device.slices = this.scheme.geometry.map((profile) => this.sliceOf(device, profile));
  }

  /** When something happens next without an arrival, ms. */
  next(): number {
    let next = Infinity;
    for (const { atMs } of this.later) next = Math.min(next, atMs);
    for (const { slices } of this.devices) for (const { endsMs } of slices) next = Math.min(next, endsMs);
    return next;
  }

  /** Ends what ends now, and does what is due; tells the scheme of ends. */
  settle(): void {
    const due = this.later.filter(({ atMs }) => atMs <= this.now);
    if (due.length > 0) this.later = this.later.filter(({ atMs }) => atMs > this.now);
    for (const { act } of due) act();
    for (const device of this.devices) {
      for (const slice of device.slices) if (slice.endsMs <= this.now) this.end(slice);
      if (device.wanted !== undefined) this.cutIfEmpty(device);
    }
  }

  /** Counts all slices up to now. */
  close(): void {
    for (const device of this.devices) {
      for (const slice of device.slices) this.count(slice);
      if (device.running > 0) this.totals.busyMs += this.now - device.busySinceMs;
    }
  }

  private end(slice: Slice): void {
    this.count(slice);
    const { device } = slice;
    const done: Run[] = [];
    const left: Run[] = [];
    for (const run of slice.runs) (run.leftMs <= 1e-6 ? done : left).push(run);
    slice.runs = left;
    for (const { batch, startedMs, aloneMs, deficiencyMs, interferenceMs, besideMs } of done) {
      slice.freeMiB += batch.model.memoryMiB;
      const [endedMs, { profile }] = [this.now, slice];
      const ended = { batch, startedMs, aloneMs, deficiencyMs, interferenceMs, besideMs, endedMs, profile };
      this.served.push(ended);
      device.running -= 1;
      if (device.running === 0) this.totals.busyMs += this.now - device.busySinceMs;
      this.scheme.ended?.(ended);
    }
    this.rate(slice);
  }

  /** Lets the runs of a slice progress up to now. */
  private count(slice: Slice): void {
    const dt = this.now - slice.countedMs;
    slice.countedMs = this.now;
    if (dt <= 0 || slice.runs.length === 0) return;
    this.totals.usedMiBMs += dt * (slice.memoryMiB - slice.freeMiB);
    for (const run of slice.runs) {
      const done = dt / run.slowdown;
      run.leftMs -= done;
      run.aloneMs += done;
      run.deficiencyMs += done * (run.deficiency - 1);
      run.interferenceMs += dt - done * run.deficiency;
      if (this.scheme.watchesNeighbours !== true) continue;
      const { besideMs } = run;
      for (const other of slice.runs) {
        if (other !== run) besideMs.set(other.batch, (besideMs.get(other.batch) ?? 0) + dt);
      }
    }
  }

  /** Equation 1 on the slice, and a cost of sharing it that is no part of it. */
  private rate(slice: Slice): void {
    const { runs } = slice;
    let demand = 0;
    for (const { bandwidth } of runs) demand += bandwidth;
    const stretch = Math.max(1, demand) * (runs.length > 1 ? 1 + this.world.clientCost : 1);
    slice.endsMs = Infinity;
    for (const run of runs) {
      run.slowdown = run.deficiency * stretch;
      slice.endsMs = Math.min(slice.endsMs, this.now + run.leftMs * run.slowdown);
    }
  }

  private cutIfEmpty(device: Device): void {
    const { wanted } = device;
    if (wanted === undefined) return;
    const { remove, add } = sliceChanges(slicesOf(device), wanted);
    const going = device.slices.filter(({ id }) => remove.includes(id));
    if (going.some(({ runs, queue }) => runs.length + queue.length > 0)) return;
    device.wanted = undefined;
    device.slices = device.slices.filter((slice) => !going.includes(slice));
    this.totals.cuts += 1;
    this.later.push({
      atMs: this.now + cutMs,
      act: () => {
        if (!device.isThere) return;
        for (const slice of device.slices) slice.isClosed = false;
        device.slices = [...device.slices, ...add.map((profile) => this.sliceOf(device, profile))];
      },
    });
  }

  private sliceOf(device: Device, profile: string): Slice {
    const memoryMiB = memoryOf(profile);
    return {
      id: `${device.id}:${profile}-${(this.made += 1)}`,
      ...{ device, profile, memoryMiB, freeMiB: memoryMiB, runs: [], isClosed: false },
      ...{ countedMs: this.now, endsMs: Infinity, queue: [] },
    };
  }
}

const slicesOf = ({ slices }: Device): { uuid: string; profile: string }[] =>
  slices.map(({ id, profile }) => ({ uuid: id, profile }));

/** Results of a replay. */
export interface Replayed {
  served: readonly Served[];
  totals: Totals;
  /** From 0 to the end of the last batch, ms. */
  lengthMs: number;
}

/** Ticks in a row at which nothing else was to come. */
const mostIdleTicks = 20;

/** GPUs of the paper's cluster. */
export const deviceCount = 8;

/**
 * Serves batches, in the order of the times at which they can start, until all have ended. Throws Error if the scheme leaves some
 * waiting for ever.
 */
export function serve(
  world: Pick<World, 'clientCost'>,
  batches: readonly Batch[],
  scheme: Scheme,
  count = deviceCount,
  incidents: readonly Incident[] = [],
): Replayed {
  const cluster = new Cluster(world, scheme, count);
  const { tickMs = Infinity } = scheme;
  let coming = 0;
  let incident = 0;
  let nextTick = tickMs;
  let idleTicks = 0;
  while (cluster.served.length < batches.length) {
    for (; (incidents[incident]?.atMs ?? Infinity) <= cluster.now; incident += 1) incidents[incident]?.act(cluster);
    cluster.settle();
    for (; (batches[coming]?.readyMs ?? Infinity) <= cluster.now; coming += 1) {
      scheme.arrived(batches[coming] as Batch, cluster);
    }
    if (cluster.now >= nextTick) {
      scheme.tick?.(cluster);
      nextTick = cluster.now + tickMs;
    }
    scheme.dispatch(cluster);
    const happens = Math.min(
      cluster.next(),
      batches[coming]?.readyMs ?? Infinity,
      incidents[incident]?.atMs ?? Infinity,
    );
    if (cluster.served.length === batches.length) break;
    // Ticks may still cut a device for what waits, but not for ever.
    idleTicks = happens === Infinity ? idleTicks + 1 : 0;
    if (happens === Infinity && (nextTick === Infinity || idleTicks > mostIdleTicks)) {
      throw new Error(`${batches.length - cluster.served.length} batches wait for ever`);
    }
    cluster.now = Math.min(happens, nextTick);
  }
  cluster.close();
  const { served, totals, now } = cluster;
  const whole = count * (now - (batches[0]?.readyMs ?? 0));
  totals.deviceMs = whole;
  totals.deviceMiBMs = whole * memoryOf('7g.40gb');
  return { served, totals, lengthMs: now };
}
