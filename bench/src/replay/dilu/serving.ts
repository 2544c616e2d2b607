// Functions and training jobs on shared devices, period by period.
import { latencyAt } from '../model/latency-surface.js';
import { WaitingRequests } from './requests.js';
import { outputTokensOf, type ServedModel } from './served-models.js';
import { shareCurve, speedOf, type DeviceClient, type ShareCurve, type SharedDevice } from './shared-device.js';

/** Curves of all batches up to the model's own, by size; the first one is that of one request. */
export function curvesOf({ surface, batch }: ServedModel): ShareCurve[] {
  const [leastShare = 1] = surface.shares;
  return Array.from({ length: batch + 1 }, (_, size) =>
    shareCurve((share) => latencyAt(surface, Math.max(1, size), share), leastShare),
  );
}

/** A client with its device. */
export interface Seat {
  device: SharedDevice;
  client: DeviceClient;
}

/** The requests of a function, and how they were served. */
export class RequestLoad {
  readonly waiting = new WaitingRequests();
  /** From arrival to result, ms, of those that were served. */
  readonly latenciesMs: number[] = [];
  violations = 0;

  constructor(
    readonly model: ServedModel,
    readonly curves: readonly ShareCurve[],
  ) {}

  /** A run of these requests has ended. */
  served(arrivals: readonly number[], at: number): void {
    for (const arrivedAt of arrivals) {
      this.latenciesMs.push(at - arrivedAt);
      if (at - arrivedAt > this.model.sloMs) this.violations += 1;
    }
  }
}

/**
 * An instance of a function. It takes up to a batch of what waits. One that spans devices runs a part of each batch on each of
 * them in turn.
 */
export class ServingInstance {
  /** Retires after its run. */
  isLast = false;
  idleSince: number;
  private run: { arrivals: number[]; startedAt: number; curve: ShareCurve; part: number; leftMs: number } | undefined;

  constructor(
    readonly id: string,
    private readonly load: RequestLoad,
    readonly seats: readonly Seat[],
    readonly readyAt: number,
    /** Time of a full batch as it is expected, ms. */
    private readonly fullMs: number,
  ) {
    this.idleSince = readyAt;
  }

  get isRunning(): boolean {
    return this.run !== undefined;
  }

  /** Before the division of a period: which of its clients have work in it. */
  mark(until: number): void {
    const part = this.run?.part ?? (this.mayStart(until) ? 0 : -1);
    for (const [at, { client }] of this.seats.entries()) client.isActive = at === part;
  }

  /** Runs through a period. */
  advance(from: number, until: number): void {
    let at = Math.max(from, this.readyAt);
    while (at < until) {
      if (this.run === undefined) {
        if (!this.mayStart(until)) break;
        at = Math.max(at, this.load.waiting.first());
        this.start(at);
      }
      const run = this.run as NonNullable<typeof this.run>;
      const { client } = this.seats[run.part] as Seat;
      const speed = speedOf(client);
      // It was not active at the begin of the period.
      if (speed === 0) break;
      if (at + run.leftMs / speed > until) {
        client.workedMs += (until - at) * speed;
        run.leftMs -= (until - at) * speed;
        break;
      }
      client.workedMs += run.leftMs;
      at += run.leftMs / speed;
      if (run.part + 1 < this.seats.length) {
        run.part += 1;
        run.leftMs = run.curve.aloneMs / this.seats.length;
        (this.seats[run.part] as Seat).client.curve = run.curve;
        // The next device divides its SMs again in the next period.
        break;
      }
      this.finish(at);
    }
    const { run } = this;
    for (const { device, client } of this.seats) {
      device.running(client, run === undefined ? 0 : until - run.startedAt, run?.arrivals.length ?? 0);
    }
  }

  private mayStart(until: number): boolean {
    return !this.isLast && this.readyAt < until && this.load.waiting.first() < until;
  }

  private start(at: number): void {
    const { waiting, model, curves } = this.load;
    waiting.demote(at, this.fullMs, model.sloMs);
    const arrivals = [waiting.take()];
    while (arrivals.length < model.batch && waiting.first() <= at) arrivals.push(waiting.take());
    const curve = curves[arrivals.length] as ShareCurve;
    this.run = { arrivals, startedAt: at, curve, part: 0, leftMs: curve.aloneMs / this.seats.length };
    (this.seats[0] as Seat).client.curve = curve;
  }

  private finish(at: number): void {
    const { arrivals, startedAt } = this.run as NonNullable<typeof this.run>;
    this.run = undefined;
    this.idleSince = at;
    this.load.served(arrivals, at);
    for (const { device, client } of this.seats) device.cycle(client, at - startedAt, arrivals.length);
  }
}

/** A training job with data parallelism: each step computes on all members, then waits for their gradients. */
export interface TrainingJob {
  name: string;
  workers: number;
  /** Of the computation of a step. */
  curve: ShareCurve;
  /** Time without computation in each step, ms. */
  syncMs: number;
  /** Infinity: it runs as long as the replay. */
  steps: number;
}

/** A training job on its devices. */
export class RunningTraining {
  steps = 0;
  endedAt: number | undefined;
  private startAt: number;
  private readonly leftMs: number[];
  private readonly doneAt: number[];

  constructor(
    readonly job: TrainingJob,
    readonly seats: readonly Seat[],
    now: number,
  ) {
    this.startAt = now;
    this.leftMs = seats.map(() => job.curve.aloneMs);
    this.doneAt = seats.map(() => 0);
  }

  mark(until: number): void {
    for (const [at, { client }] of this.seats.entries()) {
      client.isActive = this.endedAt === undefined && this.startAt < until && (this.leftMs[at] as number) > 0;
    }
  }

  advance(from: number, until: number): void {
    const begin = Math.max(from, this.startAt);
    let isOver = true;
    for (const [at, { client }] of this.seats.entries()) {
      if (!client.isActive) {
        isOver &&= (this.leftMs[at] as number) === 0;
        continue;
      }
      const speed = speedOf(client);
      const left = this.leftMs[at] as number;
      const worked = Math.min(left, (until - begin) * speed);
      client.workedMs += worked;
      this.leftMs[at] = worked === left ? 0 : left - worked;
      if (worked === left) this.doneAt[at] = begin + left / speed;
      else isOver = false;
    }
    if (!isOver || this.endedAt !== undefined) return;
    // The slowest member is the one that the others wait for.
    this.startAt = Math.max(...this.doneAt) + this.job.syncMs;
    this.leftMs.fill(this.job.curve.aloneMs);
    this.steps += 1;
    if (this.steps >= this.job.steps) this.endedAt = this.startAt;
  }
}

/** Mean time for each output token of a language model's request, ms, from its latency. */
export function perTokenMs({ name }: ServedModel, latencyMs: number): number {
  return latencyMs / outputTokensOf(name);
}
