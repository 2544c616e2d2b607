import { newActivationId } from '@gpuwhisk/common/ids';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { GpuNeed, GpuQueued, Rejection } from '@gpuwhisk/common/gpu';
import type { PlacementRequest } from '@gpuwhisk/gpu/ledger/account';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { inTurn } from '@gpuwhisk/gpu/stages/order/earliest-deadline';
import { shareOf } from '@gpuwhisk/gpu/view/shares';
import type { FunctionLog, LoggedFunction } from '@gpuwhisk/gpu/view/function-log';
import type { SchedulingEvent } from '@gpuwhisk/gpu/view/view';
import type { KnownFunction, KnownFunctions } from '../learning/degradations.js';
import type { CalledFunction } from '../learning/request-forecasts.js';

// Arrivals: their times, the log for trials of policies, and the last request of each function.

/** Bound on drift and rounding between two unadjusted clocks from one decision to the next, ms. */
const toleranceMs = 50;

/**
 * Arrival times of queued activations on a view's clock. They are derived from the waiting times, so that an adjustment of
 * the clock makes no activation late. The time of an activation stays equal from view to view, as a different one would
 * count as a new arrival.
 */
export class Arrivals {
  private readonly known = new WeakMap<ActivationMessage, number>();

  /** The arrival, epoch ms. `at` and `nowMs` are the same moment on the view's clock and on the monotonic one. */
  of({ message, arrivedMs }: { message: ActivationMessage; arrivedMs: number }, at: number, nowMs: number): number {
    const arrivedAt = at - (nowMs - arrivedMs);
    const known = this.known.get(message);
    if (known !== undefined && Math.abs(known - arrivedAt) < toleranceMs) return known;
    this.known.set(message, arrivedAt);
    return arrivedAt;
  }
}

/** Most arrivals kept. */
const maxArrivals = 10_000;

/** An activation with a GPU, without arguments and caller. */
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

  /** Adds an arrival. */
  add(message: ActivationMessage, need: GpuNeed): void {
    const { activationId, action, transid } = message;
    const { version = '' } = action;
    this.arrivals.push({ activationId, version, need, request: requestOf(message, need), at: transid[1] });
    if (this.arrivals.length > 2 * maxArrivals) this.arrivals = this.arrivals.slice(-maxArrivals);
  }

  /** The arrivals since `sinceMs` (epoch ms), oldest first; at most the last `maxArrivals`. */
  since(sinceMs: number): Arrival[] {
    return this.arrivals
      .slice(-maxArrivals)
      .filter(({ at }) => at >= sinceMs)
      .sort((one, other) => one.at - other.at);
  }
}

/** The last activation of a function, from which a launch is made. */
export interface LastRequest {
  /** The message with only those arguments that loading the code needs. */
  message: ActivationMessage;
  need: GpuNeed;
}

/** The part of an activation that is kept. */
export function lastRequestOf(message: ActivationMessage, need: GpuNeed): LastRequest {
  const { content, initArgs } = message;
  const loading = Object.entries(content ?? {}).filter(([name]) => initArgs.includes(name));
  return { message: { ...message, content: Object.fromEntries(loading) }, need };
}

/** The launch of an instance of a function at `at` (epoch ms): an activation that loads it. */
export function launchOf({ message, need }: LastRequest, at: number, random: Random): ActivationMessage {
  return {
    ...message,
    activationId: newActivationId(at, random),
    transid: ['sid_gpuScale', at],
    blocking: false,
    gpuNeed: need,
  };
}

/** An activation that waits for a GPU. */
export interface WaitingActivation {
  message: ActivationMessage;
  need: GpuNeed;
  request: PlacementRequest;
  /** Monotonic ms, so that an adjusted clock does not change the waiting time. */
  arrivedMs: number;
  /** Absent for best effort: from the beginning, or since the deadline has passed. */
  sloMs: number | undefined;
  /** Why it runs alone, though its annotation does not say so; absent: it need not. */
  apart?: string;
  /** Reasons of the agents that refused the activation. */
  refusals: readonly string[];
  /** Times of refusals by node, monotonic ms; older rows of these nodes are outdated. */
  refusedAtMs: ReadonlyMap<string, number>;
  /** Ends the message that keeps the activation. */
  done: () => void;
}

/** The request of an activation to a place. */
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
    ...(need.spans !== undefined && { spans: need.spans }),
    isolation: need.isolation,
    isBounded: need.maxShareClass !== undefined,
    timeLimitMs: need.timeoutMs,
    batch: need.batch,
  };
}

/** A new entry of the queue; its wait counts from the activation's acceptance. */
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
  /** The policy's last decision: positions in the order by id, and rejected alternatives. */
  private turns = new Map<string, number>();
  private rejected = new Map<string, Rejection[]>();

  get size(): number {
    return this.waiting.size;
  }

  has(activationId: string): boolean {
    return this.waiting.has(activationId);
  }

  get(activationId: string): WaitingActivation | undefined {
    return this.waiting.get(activationId);
  }

  /** The activations in no particular order. */
  [Symbol.iterator](): IterableIterator<WaitingActivation> {
    return this.waiting.values();
  }

  /** Adds an activation; if its message arrives twice, both end together. */
  add(one: WaitingActivation): void {
    const id = one.message.activationId;
    const known = this.waiting.get(id);
    if (known === undefined) this.waiting.set(id, one);
    else this.waiting.set(id, { ...known, done: () => [known, one].forEach(({ done }) => done()) });
  }

  /** The rejected alternatives of an activation when that was last decided. */
  rejectedOf(activationId: string): readonly Rejection[] {
    return this.rejected.get(activationId) ?? [];
  }

  remove({ message }: WaitingActivation): void {
    this.waiting.delete(message.activationId);
    this.rejected.delete(message.activationId);
  }

  /** Removes an activation and ends its message, if it is queued. */
  end(activationId: string): void {
    const found = this.waiting.get(activationId);
    found?.done();
    if (found !== undefined) this.remove(found);
  }

  /** Makes an activation best effort. */
  demote(one: WaitingActivation): void {
    this.waiting.set(one.message.activationId, { ...one, sloMs: undefined });
  }

  /** The activations whose SLO has passed. */
  late(nowMs: number): WaitingActivation[] {
    return [...this.waiting.values()].filter(({ arrivedMs, sloMs }) => nowMs - arrivedMs > (sloMs ?? Infinity));
  }

  /** The activations that have waited for `maxWaitMs`; runs of training jobs wait for any time. */
  spent(nowMs: number, maxWaitMs: number): WaitingActivation[] {
    return [...this.waiting.values()].filter(
      ({ arrivedMs, message }) => nowMs - arrivedMs >= maxWaitMs && message.training === undefined,
    );
  }

  /**
   * Notes the order of a policy's decision and the rejected alternatives. `ofOne`: the policy has looked at one activation
   * only. One that goes on to wait without new reasons, as it was not tried, keeps those of its last try.
   */
  decided(order: readonly string[], rejected: readonly ({ task: string } & Rejection)[], ofOne: boolean): void {
    this.turns = new Map(order.map((id, at) => [id, at]));
    const before = this.rejected;
    if (!ofOne) this.rejected = new Map();
    for (const { task, ...rejection } of rejected) {
      const known = this.rejected.get(task);
      if (known === undefined) this.rejected.set(task, [rejection]);
      else known.push(rejection);
    }
    if (ofOne) return;
    for (const id of order) {
      const known = before.get(id);
      if (known !== undefined && !this.rejected.has(id)) this.rejected.set(id, known);
    }
  }

  /** All activations in order; those that arrived since the last decision come last. */
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

/** Most arrivals that are decided one by one; after more, one pass looks at the whole queue. */
const maxSingleArrivals = 4;

/** The events since the last decision of a policy. */
export class GpuEvents {
  private arrivals = new Set<string>();
  private other: SchedulingEvent | undefined;

  add(event: SchedulingEvent): void {
    if (event.kind === 'arrival') this.arrivals.add(event.task);
    // After several such events a pass looks at the whole queue, whatever the events were.
    else this.other = this.other === undefined ? event : { kind: 'timer' };
  }

  /**
   * Takes the events for the next passes, in order. These are single arrivals, which free no room for others, or else one
   * event for a pass over the whole queue, new arrivals included.
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

/** A function with its arrivals, from the log of functions. */
export function calledFunction({
  last: { message, need },
  counts,
}: Pick<LoggedFunction<LastRequest>, 'last' | 'counts'>): CalledFunction {
  const { action, namespace } = requestOf(message, need);
  return { function: action, namespace, counts };
}

/** The functions of the log, as models of pairs know them. */
export function knownFunctions(log: Pick<FunctionLog<LastRequest>, 'all' | 'ofKey'>): KnownFunctions {
  const known = ({ last: { message, need } }: LoggedFunction<LastRequest>): KnownFunction => ({
    function: requestOf(message, need).action,
    version: message.action.version ?? '',
    batch: need.batch,
    memoryMiB: need.memoryMiB,
    ...(need.maxShareClass !== undefined && { maxShareClass: need.maxShareClass }),
    ...(need.features && { declared: need.features }),
  });
  return {
    all: () => Array.from(log.all(), known),
    ofKey: (key) => {
      const logged = log.ofKey(key);
      return logged && known(logged);
    },
  };
}
