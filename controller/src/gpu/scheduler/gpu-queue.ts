import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { GpuNeed, GpuQueued, Rejection } from '@gpuwhisk/common/gpu';
import type { PlacementRequest } from '@gpuwhisk/gpu/view/account';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { inTurn } from '@gpuwhisk/gpu/order/earliest-deadline';
import { shareOf } from '@gpuwhisk/gpu/view/shares';
import type { SchedulingEvent } from '@gpuwhisk/gpu/view/view';

// Arrivals of activations: their times, the log for trials of policies, and the last request of each function.

/** Two clocks that are not set drift by less between two decisions, and round by less, ms. */
const toleranceMs = 50;

/**
 * When those who wait have arrived, on the clock of a snapshot: reckoned from how long they wait, so that a clock that is
 * set makes no activation late, and the same each time, so that none is taken for a new arrival.
 */
export class Arrivals {
  private readonly known = new WeakMap<ActivationMessage, number>();

  /** Epoch ms. `at` and `nowMs` are the same moment, on the snapshot's clock and monotonic. */
  of({ message, arrivedMs }: { message: ActivationMessage; arrivedMs: number }, at: number, nowMs: number): number {
    const arrivedAt = at - (nowMs - arrivedMs);
    const known = this.known.get(message);
    if (known !== undefined && Math.abs(known - arrivedAt) < toleranceMs) return known;
    this.known.set(message, arrivedAt);
    return arrivedAt;
  }
}

/** Arrivals that are kept, at most. */
const maxArrivals = 10_000;

/** An activation with a GPU, without its arguments and its caller. */
export interface Arrival {
  activationId: string;
  version: string;
  need: GpuNeed;
  request: PlacementRequest;
  /** Epoch ms. */
  at: number;
}

/** The last activations with a GPU that this controller had to place. */
export class ArrivalLog {
  private arrivals: Arrival[] = [];

  /** Records one. */
  add(message: ActivationMessage, need: GpuNeed): void {
    const { activationId, action, transid } = message;
    const { version = '' } = action;
    this.arrivals.push({ activationId, version, need, request: requestOf(message, need), at: transid[1] });
    if (this.arrivals.length > 2 * maxArrivals) this.arrivals = this.arrivals.slice(-maxArrivals);
  }

  /** The arrivals since `sinceMs` (epoch ms), the oldest first; at most the last `maxArrivals`. */
  since(sinceMs: number): Arrival[] {
    return this.arrivals
      .slice(-maxArrivals)
      .filter(({ at }) => at >= sinceMs)
      .sort((one, other) => one.at - other.at);
  }
}

/** The last activation of a function: what an instance of it is launched with. */
export interface LastRequest {
  /** Without arguments, but for those that code is loaded with. */
  message: ActivationMessage;
  need: GpuNeed;
}

/** The part of an activation that is kept. */
export function lastRequestOf(message: ActivationMessage, need: GpuNeed): LastRequest {
  const { content, initArgs } = message;
  const loading = Object.entries(content ?? {}).filter(([name]) => initArgs.includes(name));
  return { message: { ...message, content: Object.fromEntries(loading) }, need };
}

/** An activation that waits for a GPU. */
export interface WaitingActivation {
  message: ActivationMessage;
  need: GpuNeed;
  request: PlacementRequest;
  /** Monotonic ms: how long it waits does not depend on a clock that is set. */
  arrivedMs: number;
  /** Absent: best effort, from the beginning or since its deadline has passed. */
  sloMs: number | undefined;
  /** Why agents refused it so far. */
  refusals: readonly string[];
  /** By node that refused it, when, monotonic ms: what is known from before is out of date. */
  refusedAtMs: ReadonlyMap<string, number>;
  /** Ends the message that keeps it. */
  done: () => void;
}

/** The request of an activation to a device. */
export function requestOf(
  { action, user }: Pick<ActivationMessage, 'action' | 'user'>,
  need: GpuNeed,
): PlacementRequest {
  return {
    action: `/${action.path}/${action.name}`,
    namespace: user.namespace.name,
    ...(need.batch > 1 && { subject: user.subject }),
    share: shareOf(need),
    memoryMiB: need.memoryMiB,
    gpus: need.gpus,
    isolation: need.isolation,
    isBounded: need.maxShareClass !== undefined,
    batch: need.batch,
  };
}

/** An activation as it joins the queue; its wait counts from its acceptance. */
export function waitingOf(message: ActivationMessage, need: GpuNeed, clock: Clock): WaitingActivation {
  return {
    message,
    need,
    request: requestOf(message, need),
    arrivedMs: clock.monotonicMs() - Math.max(0, clock.now() - message.transid[1]),
    sloMs: need.sloMs,
    refusals: [],
    refusedAtMs: new Map(),
    done: () => undefined,
  };
}

/** Activations that wait for a GPU, each once. */
export class GpuQueue {
  private readonly waiting = new Map<string, WaitingActivation>();
  /** As a policy has decided last: turns by id, and what each was not put on. */
  private turns = new Map<string, number>();
  private rejected = new Map<string, Rejection[]>();

  get size(): number {
    return this.waiting.size;
  }

  has(activationId: string): boolean {
    return this.waiting.has(activationId);
  }

  /** In no particular order. */
  [Symbol.iterator](): IterableIterator<WaitingActivation> {
    return this.waiting.values();
  }

  /** Adds one; a message that comes twice ends with the first. */
  add(one: WaitingActivation): void {
    const id = one.message.activationId;
    const known = this.waiting.get(id);
    if (known === undefined) this.waiting.set(id, one);
    else this.waiting.set(id, { ...known, done: () => [known, one].forEach(({ done }) => done()) });
  }

  remove({ message }: WaitingActivation): void {
    this.waiting.delete(message.activationId);
    this.rejected.delete(message.activationId);
  }

  /** Ends one that waits, if it does. */
  end(activationId: string): void {
    const found = this.waiting.get(activationId);
    found?.done();
    if (found !== undefined) this.remove(found);
  }

  /** Makes one best effort. */
  demote(one: WaitingActivation): void {
    this.waiting.set(one.message.activationId, { ...one, sloMs: undefined });
  }

  /** The activations whose SLO has passed. */
  late(nowMs: number): WaitingActivation[] {
    return [...this.waiting.values()].filter(({ arrivedMs, sloMs }) => nowMs - arrivedMs > (sloMs ?? Infinity));
  }

  /** The activations that have waited for `maxWaitMs`. */
  spent(nowMs: number, maxWaitMs: number): WaitingActivation[] {
    return [...this.waiting.values()].filter(({ arrivedMs }) => nowMs - arrivedMs >= maxWaitMs);
  }

  /** A policy has decided in which order they wait, and why each does; `ofOne`: it has looked at one of them only. */
  decided(order: readonly string[], rejected: readonly ({ task: string } & Rejection)[], ofOne: boolean): void {
    this.turns = new Map(order.map((id, at) => [id, at]));
    if (!ofOne) this.rejected = new Map();
    for (const { task, ...rejection } of rejected) {
      const known = this.rejected.get(task);
      if (known === undefined) this.rejected.set(task, [rejection]);
      else known.push(rejection);
    }
  }

  /** All of them in the order of their turn; those who came since a policy has decided are last. */
  described(nowMs: number): GpuQueued[] {
    const turnOf = ({ message }: WaitingActivation): number => this.turns.get(message.activationId) ?? this.turns.size;
    const ordered = this.inTurn(nowMs).sort((one, other) => turnOf(one) - turnOf(other));
    return ordered.map(({ message, request, need, arrivedMs, sloMs, refusals }, at) => ({
      activationId: message.activationId,
      action: request.action,
      namespace: request.namespace,
      position: at + 1,
      waitedMs: Math.max(0, Math.floor(nowMs - arrivedMs)),
      ...(sloMs !== undefined && { sloMs }),
      memoryMiB: need.memoryMiB,
      gpus: need.gpus,
      refusals: [...refusals],
      rejected: this.rejected.get(message.activationId) ?? [],
    }));
  }

  inTurn(nowMs: number): WaitingActivation[] {
    return inTurn([...this.waiting.values()], nowMs);
  }
}

/** Arrivals that are decided one by one; of more at once all who wait are looked at together. */
const maxSingleArrivals = 4;

/** The events since the last decision of a policy. */
export class GpuEvents {
  private arrivals = new Set<string>();
  private other: SchedulingEvent | undefined;

  add(event: SchedulingEvent): void {
    if (event.kind === 'arrival') this.arrivals.add(event.task);
    // After several of them all who wait are looked at, whichever they were.
    else this.other = this.other === undefined ? event : { kind: 'timer' };
  }

  /**
   * What to decide about, in order, and nothing of it again: each arrival for itself, which makes no room for others; or
   * one event for which a policy looks at all who wait, those who have just come included.
   */
  take(): SchedulingEvent[] {
    const { arrivals, other } = this;
    this.arrivals = new Set();
    this.other = undefined;
    if (other !== undefined) return [other];
    if (arrivals.size === 0 || arrivals.size > maxSingleArrivals) return [{ kind: 'timer' }];
    return [...arrivals].map((task) => ({ kind: 'arrival', task }));
  }
}
