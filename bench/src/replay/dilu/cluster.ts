// Training jobs and functions together on a small cluster (Dilu, sections 5.2 and 5.4).
import type { Scale } from '@gpuwhisk/gpu/scale/scale';
import type { InstanceState, ServedRates } from '@gpuwhisk/gpu/view/view';
import { latencyAt } from '../model/latency-surface.js';
import { Fleet, type FleetShape, type PackingRule, type Part } from './fleet.js';
import type { InstanceKind, PackedInstance } from './instances.js';
import type { Load } from './loads.js';
import { Arrivals, taskOf } from './requests.js';
import type { ServedModel } from './served-models.js';
import { curvesOf, RequestLoad, RunningTraining, ServingInstance, type Seat, type TrainingJob } from './serving.js';
import { periodMs, SharedDevice, type Control, type ShareCurve } from './shared-device.js';

/** A function with its load. */
export interface LoadedFunction {
  model: ServedModel;
  kind: Exclude<InstanceKind, 'training'>;
  memoryMiB: number;
  load: Load;
}

/** A training job as it is submitted. Shares are fractions of the SMs. */
export interface SubmittedTraining extends TrainingJob {
  request: number;
  limit: number;
  memoryMiB: number;
  atS: number;
}

/** A way to share devices. */
export interface SharingWay {
  rule: PackingRule;
  control: Control;
  /** Every instance has its devices for itself. */
  isExclusive?: true;
  scale: Scale;
  /** What the scale stage is told that an instance of a function serves. */
  served(model: ServedModel): ServedRates;
}

/** How a function was served. */
export interface FunctionResult {
  name: string;
  requests: number;
  violations: number;
  coldStarts: number;
  latenciesMs: readonly number[];
  /** Devices that its instances occupied over time, s: each device is divided by the requests of what is there. */
  occupiedS: number;
}

/** How a training job went. */
export interface TrainingResult {
  name: string;
  /** From its submission to its end, s; undefined if it has no end. */
  jctS: number | undefined;
  steps: number;
  occupiedS: number;
}

/** How all were served. */
export interface ClusterResult {
  functions: readonly FunctionResult[];
  trainings: readonly TrainingResult[];
  /** Devices in use while the load lasts: on average, and the most. */
  gpus: number;
  mostGpus: number;
}

const tickMs = 1000;
/** Parts of a launch cycle that it may grow by before the token machine steps in (Dilu, algorithm 2: η_violation). */
const violations = { inference: 0.2, llm: 0.3, training: 0 } as const;
/** So many times the load's length is waited for training jobs to end. */
const mostLengths = 4;

/** A function while it is served. */
interface Serving {
  function: LoadedFunction;
  load: RequestLoad;
  counts: Arrivals;
  next: number;
  instances: ServingInstance[];
  made: number;
  coldStarts: number;
}

/** A training job from its submission on. */
interface Submitted {
  training: SubmittedTraining;
  running: RunningTraining | undefined;
  jctS: number | undefined;
}

/**
 * Plays training jobs and functions on a cluster. Each function begins with one instance; its scale stage is asked each second, and
 * a start takes `coldMs`. What finds no place is placed as soon as there is one. Ends when the load is over and all training
 * jobs with an end have ended. Throws Error if they do not end.
 */
export function runCluster(
  functions: readonly LoadedFunction[],
  trainings: readonly SubmittedTraining[],
  way: SharingWay,
  shape: FleetShape,
  { lengthS, coldMs }: { lengthS: number; coldMs: number },
): ClusterResult {
  const cluster = new Cluster(functions, trainings, way, shape, lengthS);
  const endMs = lengthS * 1000;
  for (let now = 0; now < endMs || cluster.isTraining(); now += periodMs) {
    if (now > mostLengths * endMs) throw new Error(`training has not ended after ${now / 1000} s`);
    if (now % tickMs === 0) cluster.tick(now, coldMs);
    cluster.period(now);
  }
  return cluster.result();
}

class Cluster {
  private readonly fleet: Fleet;
  private readonly devices = new Map<number, SharedDevice>();
  private readonly servings: Serving[];
  private readonly submitted: Submitted[];
  private readonly packed = new Map<string, { instance: PackedInstance; seats: Seat[] }>();
  private readonly occupiedS = new Map<string, number>();
  private gpuS = 0;
  private mostGpus = 0;

  constructor(
    functions: readonly LoadedFunction[],
    trainings: readonly SubmittedTraining[],
    private readonly way: SharingWay,
    shape: FleetShape,
    private readonly lengthS: number,
  ) {
    this.fleet = new Fleet(shape);
    this.servings = functions.map((one) => ({
      ...{ function: one, load: new RequestLoad(one.model, curvesOf(one.model)), counts: new Arrivals(lengthS) },
      ...{ next: 0, instances: [], made: 0, coldStarts: 0 },
    }));
    this.submitted = trainings.map((training) => ({ training, running: undefined, jctS: undefined }));
  }

  /** Whether a job with an end has not ended. */
  isTraining(): boolean {
    return this.submitted.some(({ training, jctS }) => training.steps < Infinity && jctS === undefined);
  }

  /** Once a second: what is placed, launched, retired and counted. */
  tick(now: number, coldMs: number): void {
    for (const one of this.submitted) {
      const { training, running } = one;
      if (running === undefined && training.atS * 1000 <= now) one.running = this.begin(training, now);
      if (running?.endedAt === undefined || one.jctS !== undefined || running.endedAt > now) continue;
      one.jctS = running.endedAt / 1000 - training.atS;
      this.release(training.name);
    }
    const isLoaded = now < this.lengthS * 1000;
    for (const one of this.servings) {
      if (now === 0) this.launch(one, now, now);
      else if (isLoaded) this.scale(one, now, coldMs);
    }
    const used = this.fleet.active.size;
    if (isLoaded) {
      this.gpuS += used;
      this.mostGpus = Math.max(this.mostGpus, used);
    }
    for (const { instances, request } of this.fleet.active) {
      for (const one of instances.values()) {
        const part = this.fleet.partsOf(one).find(({ device }) => device.instances === instances);
        const isCounted = isLoaded || one.kind === 'training';
        if (isCounted) this.occupy(one.function, this.way.isExclusive === true ? 1 : (part?.request ?? 0) / request);
      }
    }
  }

  /** One period of all devices. */
  period(now: number): void {
    const until = now + periodMs;
    for (const one of this.servings) {
      const { arrivals } = one.function.load;
      for (; (arrivals[one.next] ?? Infinity) < until; one.next += 1) {
        one.counts.add(now);
        one.load.waiting.push(arrivals[one.next] as number);
      }
      for (const instance of one.instances) instance.mark(until);
    }
    for (const { running } of this.submitted) running?.mark(until);
    for (const { id } of this.fleet.active) this.devices.get(id)?.divide();
    for (const one of this.servings) {
      let left = false;
      for (const instance of one.instances) {
        instance.advance(now, until);
        left ||= instance.isLast && !instance.isRunning;
      }
      if (!left) continue;
      for (const { id, isLast, isRunning } of one.instances) if (isLast && !isRunning) this.release(id);
      one.instances = one.instances.filter(({ isLast, isRunning }) => !isLast || isRunning);
    }
    for (const { running } of this.submitted) running?.advance(now, until);
    for (const { id } of this.fleet.active) this.devices.get(id)?.end();
  }

  result(): ClusterResult {
    return {
      functions: this.servings.map(({ function: { model, load }, load: served, coldStarts }) => ({
        name: model.name,
        requests: load.arrivals.length,
        violations: served.violations + served.waiting.size,
        coldStarts,
        latenciesMs: served.latenciesMs,
        occupiedS: this.occupiedS.get(model.name) ?? 0,
      })),
      trainings: this.submitted.map(({ training: { name }, jctS, running }) => ({
        ...{ name, jctS, steps: running?.steps ?? 0, occupiedS: this.occupiedS.get(name) ?? 0 },
      })),
      gpus: this.gpuS / this.lengthS,
      mostGpus: this.mostGpus,
    };
  }

  private scale(one: Serving, at: number, coldMs: number): void {
    const { model } = one.function;
    const { launch, retire } = this.way.scale({
      ...{ at, gpus: [], waiting: [] },
      functions: [{ task: taskOf(model), arrivals: one.counts, served: this.way.served(model) }],
      instances: one.instances.map((instance) => stateOf(instance, model, at)),
    });
    for (const { count } of launch) {
      for (let more = 0; more < count; more += 1) {
        if (this.launch(one, at, at + coldMs)) one.coldStarts += 1;
      }
    }
    for (const { instance: id } of retire) {
      const instance = one.instances.find((other) => other.id === id);
      if (instance === undefined) continue;
      instance.isLast = true;
      if (instance.isRunning) continue;
      this.release(id);
      one.instances = one.instances.filter((other) => other !== instance);
    }
    // A request that finds no instance starts one.
    if (one.instances.length === 0 && one.load.waiting.size > 0 && this.launch(one, at, at + coldMs))
      one.coldStarts += 1;
  }

  /** Places an instance; false if it finds no place. */
  private launch(one: Serving, now: number, readyAt: number): boolean {
    const { model, kind, memoryMiB } = one.function;
    const { name, batch, surface, request, limit } = model;
    const id = `${name}/${one.made}`;
    const seats = this.place(
      {
        ...{ id, function: name, kind, gpus: 1, memoryMiB },
        ...{ request: Math.round(request * 1000), limit: Math.round(limit * 1000) },
      },
      one.load.curves[batch] as ShareCurve,
    );
    if (seats === undefined) return false;
    one.made += 1;
    const { terms } = (seats[0] as Seat).client;
    // Tokens promise the request alone.
    const sure = this.way.control === 'fixed' ? terms.limit : terms.request;
    const fullMs = latencyAt(surface, batch, sure);
    one.instances.push(new ServingInstance(id, one.load, seats, readyAt, fullMs));
    return true;
  }

  private begin(training: SubmittedTraining, now: number): RunningTraining | undefined {
    const { name, workers, request, limit, memoryMiB } = training;
    const seats = this.place(
      {
        ...{ id: name, function: name, kind: 'training', gpus: workers, memoryMiB },
        ...{ request: Math.round(request * 1000), limit: Math.round(limit * 1000) },
      },
      training.curve,
    );
    return seats && new RunningTraining(training, seats, now);
  }

  private place(instance: PackedInstance, curve: ShareCurve): Seat[] | undefined {
    const parts = this.way.rule(this.fleet, instance);
    if (parts === undefined) return undefined;
    this.fleet.hold(instance, parts);
    const seats = parts.map((part) => this.seat(part, violations[instance.kind], curve));
    this.packed.set(instance.id, { instance, seats });
    return seats;
  }

  private seat({ device: { id }, request, limit }: Part, violation: number, curve: ShareCurve): Seat {
    const device = this.devices.get(id) ?? new SharedDevice(this.way.control);
    this.devices.set(id, device);
    const shares =
      this.way.isExclusive === true ? { request: 1, limit: 1 } : { request: request / 1000, limit: limit / 1000 };
    return { device, client: device.add({ ...shares, violation }, curve) };
  }

  private release(id: string): void {
    const packed = this.packed.get(id);
    if (packed === undefined) return;
    this.packed.delete(id);
    this.fleet.release(packed.instance);
    for (const { device, client } of packed.seats) device.remove(client);
  }

  private occupy(name: string, devices: number): void {
    this.occupiedS.set(name, (this.occupiedS.get(name) ?? 0) + devices);
  }
}

function stateOf(
  { id, readyAt, isLast, isRunning, idleSince, seats }: ServingInstance,
  { name }: ServedModel,
  at: number,
): InstanceState {
  const { request = 1, limit = 1 } = seats[0]?.client.terms ?? {};
  const state = readyAt > at ? 'loading' : isLast ? 'draining' : isRunning ? 'running' : 'idle';
  return {
    ...{ id, function: `/bench/${name}`, namespace: 'bench', gpus: [id], memoryMiB: 0 },
    tasks: isRunning ? ['run'] : [],
    share: { request, limit, class: limit },
    state,
    ...(state === 'idle' && { idleSince }),
  };
}
