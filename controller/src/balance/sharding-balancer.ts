import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionId } from '@gpuwhisk/common/entities/action';
import { ShortLivedMap } from '@gpuwhisk/common/short-lived-map';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';
import { completionWaitMs } from '../entitlement/in-flight.js';

/** An invoker as a balancer sees it. */
export interface BalancedInvoker {
  instance: number;
  memoryMiB: number;
  isUsable: boolean;
}

interface ShardingBalancerDependencies {
  clock: Clock;
  random: Random;
  /** Every invoker that has ever been up, by number, with unusable entries between. */
  invokers: () => readonly BalancedInvoker[];
  /** Number of controllers that share the invokers, including this one. */
  controllers: () => number;
  /** Called with the invoker that did not complete an activation in time. */
  onLost?: (instance: number) => void;
}

/** Least memory of an invoker that each controller may allocate, MiB. */
const minSlotsMiB = 128;
const sweepMs = 10_000;

interface Allocation {
  instance: number;
  need: SlotNeed;
  /** When the activation's completion counts as lost, monotonic ms. */
  lostMs: number;
}

/**
 * OpenWhisk's sharding balancer. An action's hash gives its home invoker, which has its warm containers. From a full invoker
 * the search goes on in steps given by the hash. Each controller allocates its share of every invoker's memory.
 */
export class ShardingBalancer {
  private readonly slots = new Map<number, MemorySlots>();
  private readonly given = new ShortLivedMap<string, Allocation>();
  private sweepAtMs = 0;

  constructor(private readonly dependencies: ShardingBalancerDependencies) {}

  /** Activations that hold a slot. */
  get size(): number {
    return this.given.size;
  }

  /** Chooses the invoker of an activation and takes a slot there; undefined if no invoker is usable. */
  choose(action: WhiskAction, namespace: string, activationId: string): number | undefined {
    const { clock, random, controllers } = this.dependencies;
    const nowMs = clock.monotonicMs();
    if (nowMs >= this.sweepAtMs) this.sweep(nowMs);
    const invokers = shareOf(this.dependencies.invokers(), action.exec.kind === 'blackbox');
    const need = needOf(action);
    const given = { need, lostMs: nowMs + completionWaitMs(action.limits.timeout) };
    for (const at of probes(shardHash(namespace, need.actionHash), invokers.length)) {
      const invoker = invokers[at];
      if (invoker === undefined || !invoker.isUsable) continue;
      const limitMiB = Math.max(minSlotsMiB, Math.floor(invoker.memoryMiB / Math.max(1, controllers())));
      if (!this.slotsOf(invoker.instance).tryTake(need, limitMiB)) continue;
      this.given.set(activationId, { ...given, instance: invoker.instance });
      return invoker.instance;
    }
    // All usable invokers are full: the activation waits at a random one.
    const usable = invokers.filter(({ isUsable }) => isUsable);
    const chosen = usable[Math.floor(randomFraction(random) * usable.length)];
    if (chosen === undefined) return undefined;
    this.slotsOf(chosen.instance).take(need);
    this.given.set(activationId, { ...given, instance: chosen.instance });
    return chosen.instance;
  }

  /** Frees the slot of an activation that has completed or was not sent. */
  ended(activationId: string): void {
    const given = this.given.get(activationId);
    if (given === undefined) return;
    this.given.delete(activationId);
    this.slotsOf(given.instance).giveBack(given.need);
  }

  /** Frees the slots of activations whose completion was lost. */
  private sweep(nowMs: number): void {
    this.sweepAtMs = nowMs + sweepMs;
    for (const [activationId, { instance, lostMs }] of this.given.entries()) {
      if (lostMs > nowMs) continue;
      this.ended(activationId);
      this.dependencies.onLost?.(instance);
    }
  }

  private slotsOf(instance: number): MemorySlots {
    const known = this.slots.get(instance);
    if (known !== undefined) return known;
    const created = new MemorySlots();
    this.slots.set(instance, created);
    return created;
  }
}

/** Java's String.hashCode, by which OpenWhisk chooses home invokers. */
export function javaHash(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = (Math.imul(hash, 31) + text.charCodeAt(at)) | 0;
  return hash;
}

/** The hash of an action for an invoking namespace; `actionHash` is that of `ns/pkg/name` without a leading slash. */
function shardHash(namespace: string, actionHash: number): number {
  return Math.abs(javaHash(namespace) ^ actionHash);
}

/** The step sizes of recent counts; the count changes only when invokers join. */
const knownSizes = new Map<number, readonly number[]>();
const maxKnownSizes = 16;

/** Numbers from 1 to `count` that are coprime to `count` and to each other. */
export function stepSizes(count: number): readonly number[] {
  const known = knownSizes.get(count);
  if (known !== undefined) return known;
  if (knownSizes.size === maxKnownSizes) knownSizes.clear();
  const sizes = findStepSizes(count);
  knownSizes.set(count, sizes);
  return sizes;
}

function findStepSizes(count: number): number[] {
  const sizes: number[] = [];
  for (let size = 1; size <= count; size++) {
    if (divisor(size, count) === 1 && sizes.every((other) => divisor(size, other) === 1)) sizes.push(size);
  }
  return sizes;
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

/**
 * The order in which `count` invokers are tried for an action (OpenWhisk's ShardingContainerPoolBalancer). Starts at the
 * home invoker; the step reaches every invoker once.
 */
export function* probes(hash: number, count: number): Generator<number> {
  const sizes = stepSizes(count);
  const step = sizes[hash % sizes.length] ?? 1;
  for (let probe = 0, at = hash % count; probe <= count + 1; probe++, at = (at + step) % count) yield at;
}

/** The invokers for managed runtimes (the first part of the list) or for users' own images (the rest). */
export function shareOf<Invoker>(invokers: readonly Invoker[], isBlackbox: boolean): readonly Invoker[] {
  const count = invokers.length;
  return isBlackbox
    ? invokers.slice(count - Math.max(1, Math.floor(count * 0.1)))
    : invokers.slice(0, Math.max(1, Math.ceil(count * 0.9)));
}

/** The memory that an activation takes from an invoker. */
interface SlotNeed {
  /** Name and limits of the action: activations with the same key may share a container. */
  key: string;
  /** javaHash of `ns/pkg/name`. */
  actionHash: number;
  memoryMiB: number;
  /** Concurrent activations of the action in one container. */
  concurrency: number;
}

/** Needs of cached actions, so that names are joined and hashed once for many activations. */
const needs = new WeakMap<WhiskAction, SlotNeed>();

function needOf(action: WhiskAction): SlotNeed {
  const known = needs.get(action);
  if (known !== undefined) return known;
  const name = actionId(action);
  const { memory: memoryMiB } = action.limits;
  const concurrency = Math.max(1, action.limits.concurrency);
  const key = `${memoryMiB} ${concurrency} ${name}`;
  const need = { key, actionHash: javaHash(name), memoryMiB, concurrency };
  needs.set(action, need);
  return need;
}

/** The memory of one invoker that this controller may allocate. */
class MemorySlots {
  private takenMiB = 0;
  private readonly running = new Map<string, number>();

  /** Takes the memory; false if there is not enough below `limitMiB`. */
  tryTake(need: SlotNeed, limitMiB: number): boolean {
    if (this.takenMiB + this.newMiB(need) > limitMiB) return false;
    this.take(need);
    return true;
  }

  /** Takes the memory even if the limit is exceeded. */
  take(need: SlotNeed): void {
    this.takenMiB += this.newMiB(need);
    this.running.set(need.key, this.count(need) + 1);
  }

  giveBack(need: SlotNeed): void {
    const left = this.count(need) - 1;
    if (left > 0) this.running.set(need.key, left);
    else this.running.delete(need.key);
    if (left % need.concurrency === 0) this.takenMiB -= need.memoryMiB;
  }

  /** Memory of a new container, MiB; 0 if a container of the action has a free slot. */
  private newMiB(need: SlotNeed): number {
    return this.count(need) % need.concurrency === 0 ? need.memoryMiB : 0;
  }

  private count(need: SlotNeed): number {
    return this.running.get(need.key) ?? 0;
  }
}
