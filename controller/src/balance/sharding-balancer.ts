import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionId } from '@gpuwhisk/common/entities/action';
import { ShortLivedMap } from '@gpuwhisk/common/short-lived-map';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { randomFraction } from '@gpuwhisk/common/system/random';
import { completionWaitMs } from '../entitlement/in-flight.js';
import { MemorySlots } from './memory-slots.js';
import type { SlotNeed } from './memory-slots.js';
import { probes, shardHash, shareOf } from './sharding.js';

/** An invoker as a balancer sees it. */
export interface BalancedInvoker {
  instance: number;
  memoryMiB: number;
  isUsable: boolean;
}

export interface ShardingBalancerDependencies {
  clock: Clock;
  random: Random;
  /** Every invoker that has ever been up, by number, and those between them. */
  invokers: () => readonly BalancedInvoker[];
  /** Controllers that share the invokers, this one included. */
  controllers: () => number;
  /** Told of the invoker that did not complete an activation in time. */
  onLost?: (instance: number) => void;
}

/** What a controller may give out of an invoker at least, MiB. */
const minSlotsMiB = 128;
const sweepMs = 10_000;

interface Given {
  instance: number;
  need: SlotNeed;
  /** When its completion counts as lost, monotonic ms. */
  lostMs: number;
}

/**
 * OpenWhisk's sharding balancer: each action has a home invoker by its hash, where its warm containers are, and goes on
 * in steps of its own where that is full. Each controller gives out its share of every invoker's memory.
 */
export class ShardingBalancer {
  private readonly slots = new Map<number, MemorySlots>();
  private readonly given = new ShortLivedMap<string, Given>();
  private sweepAtMs = 0;

  constructor(private readonly dependencies: ShardingBalancerDependencies) {}

  /** Activations that hold a slot. */
  get size(): number {
    return this.given.size;
  }

  /** The number of the invoker that is to run an activation, which holds a slot from now on; undefined: none can. */
  choose(action: WhiskAction, namespace: string, activationId: string): number | undefined {
    const { clock, random, controllers } = this.dependencies;
    const nowMs = clock.monotonicMs();
    if (nowMs >= this.sweepAtMs) this.sweep(nowMs);
    const invokers = shareOf(this.dependencies.invokers(), action.exec.kind === 'blackbox');
    const usable = invokers.filter(({ isUsable }) => isUsable);
    if (usable.length === 0) return undefined;
    const { memory: memoryMiB, concurrency, timeout } = action.limits;
    const name = actionId(action);
    const need = { action: name, memoryMiB, concurrency: Math.max(1, concurrency) };
    const given = { need, lostMs: nowMs + completionWaitMs(timeout) };
    for (const at of probes(shardHash(namespace, name), invokers.length)) {
      const invoker = invokers[at];
      if (invoker === undefined || !invoker.isUsable) continue;
      const limitMiB = Math.max(minSlotsMiB, Math.floor(invoker.memoryMiB / Math.max(1, controllers())));
      if (!this.slotsOf(invoker.instance).tryTake(need, limitMiB)) continue;
      this.given.set(activationId, { ...given, instance: invoker.instance });
      return invoker.instance;
    }
    // All are full: what comes waits at one of them.
    const chosen = usable[Math.floor(randomFraction(random) * usable.length)];
    if (chosen === undefined) return undefined;
    this.slotsOf(chosen.instance).take(need);
    this.given.set(activationId, { ...given, instance: chosen.instance });
    return chosen.instance;
  }

  /** The activation has completed, or was not sent after all. */
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
