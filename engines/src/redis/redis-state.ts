import type { Redis } from 'ioredis';
import type { JsonValue } from '@gpuwhisk/common/json';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type {
  ClusterState,
  Held,
  Holds,
  Lease,
  RowListener,
  StateSubscription,
  WindowCounters,
} from '@gpuwhisk/common/state/cluster-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { RedisChannels, connectRedis, runScript } from './redis-client.js';
import type { RedisClientOptions } from './redis-client.js';
import * as scripts from './scripts.js';
import type { Script } from './scripts.js';

export interface RedisStateOptions extends RedisClientOptions {
  /** Before every key and channel: clusters that share a Redis have different ones. */
  prefix: string;
}

/** Connects to the state in Redis. Rejects with StateUnavailableError. */
export async function openRedisState(options: RedisStateOptions): Promise<ClusterState> {
  const redis = await connectRedis(options);
  try {
    return new RedisState(redis, await connectRedis(options), options);
  } catch (error) {
    redis.disconnect();
    throw error;
  }
}

/**
 * The state of a cluster in one Redis (or one primary with replicas). Steps are scripts, all times are those of its
 * clock. While it cannot be reached every operation fails within the time-out, some after they took effect; news of
 * that time are missed. A Redis that comes back with nothing gives no lease until those that it forgot are over.
 */
class RedisState implements ClusterState {
  private readonly channels: RedisChannels;
  private closed = false;
  private gathering = false;

  constructor(
    private readonly redis: Redis,
    private readonly listening: Redis,
    private readonly options: RedisStateOptions,
  ) {
    this.channels = new RedisChannels(listening, (warning) => options.onWarning?.(warning));
  }

  windowCounters(name: string, windowMs: number): WindowCounters {
    return {
      add: async (key, amount = 1) =>
        (await this.step(scripts.addToWindow, [this.key('count', name, windowMs, key)], [windowMs, amount])) as number,
    };
  }

  holds(name: string): Holds {
    const holders = (key: string): string => this.key('hold', name, key);
    return {
      hold: async (key, token, ttlMs) =>
        (await this.step(scripts.hold, [holders(key)], [token, wholeMs(ttlMs)])) as number,
      release: async (key, token) => {
        await this.ask(() => this.redis.zrem(holders(key), token));
      },
      count: async (key) => (await this.step(scripts.countHolders, [holders(key)], [])) as number,
      tokens: async (key) => (await this.step(scripts.listHolders, [holders(key)], [])) as string[],
      all: () => this.allHolders(name),
    };
  }

  private async allHolders(name: string): Promise<Held[]> {
    const beforeNames = this.key('hold');
    // All keys of these holds begin so: `["name","`.
    const pattern = (beforeNames + JSON.stringify([name]).slice(0, -1)).replace(/[\\*?[\]]/g, '\\$&') + ',*';
    const held: Held[] = [];
    const seen = new Set<string>();
    for (let cursor = '0'; ;) {
      const from = cursor;
      const [next, keys] = await this.ask(() => this.redis.scan(from, 'MATCH', pattern, 'COUNT', 1000));
      // A key may come twice.
      for (const full of keys.filter((key) => !seen.has(key))) {
        seen.add(full);
        const [, key] = JSON.parse(full.slice(beforeNames.length)) as [string, string];
        const found = (await this.step(scripts.listHoldersLeft, [full], [])) as string[];
        for (let at = 0; at < found.length; at += 2) {
          held.push({ key, token: found[at] ?? '', leftMs: Number(found[at + 1]) });
        }
      }
      if (next === '0') return held;
      cursor = next;
    }
  }

  async acquireLease(name: string, holder: string, ttlMs: number): Promise<Lease | undefined> {
    const keys = [this.key('lease', name), this.key('epoch'), this.key('birth')];
    const epoch = await this.step(scripts.acquireLease, keys, [holder, wholeMs(ttlMs)]);
    return epoch === null ? undefined : { name, holder, epoch: Number(epoch) };
  }

  async renewLease({ name, epoch }: Lease, ttlMs: number): Promise<boolean> {
    return (await this.step(scripts.renewLease, [this.key('lease', name)], [epoch, wholeMs(ttlMs)])) === 1;
  }

  async releaseLease({ name, epoch }: Lease): Promise<void> {
    await this.step(scripts.releaseLease, [this.key('lease', name)], [epoch]);
  }

  async currentLease(name: string): Promise<Lease | undefined> {
    const found = (await this.step(scripts.currentLease, [this.key('lease', name)], [])) as [string, string] | null;
    return found === null ? undefined : { name, holder: found[0], epoch: Number(found[1]) };
  }

  async setRow(table: string, key: string, value: JsonValue, ttlMs?: number): Promise<void> {
    const ttl = ttlMs === undefined || ttlMs === Infinity ? '' : wholeMs(ttlMs);
    const news = JSON.stringify([key, value]);
    await this.step(scripts.setRow, this.rowKeys(table), [key, JSON.stringify(value), this.news(table), news, ttl]);
  }

  async deleteRow(table: string, key: string): Promise<void> {
    await this.step(scripts.deleteRow, this.rowKeys(table), [key, this.news(table), JSON.stringify([key])]);
  }

  async rows(table: string): Promise<Map<string, JsonValue>> {
    const found = (await this.step(scripts.readRows, this.rowKeys(table), [])) as string[];
    const rows = new Map<string, JsonValue>();
    for (let at = 0; at < found.length; at += 2) rows.set(found[at] ?? '', JSON.parse(found[at + 1] ?? 'null'));
    return rows;
  }

  watch(table: string, listener: RowListener): Promise<StateSubscription> {
    return this.ask(() =>
      this.channels.listen(this.news(table), (message) => {
        const [key, value] = message as [string, JsonValue?];
        listener(key, value);
      }),
    );
  }

  async publish(channel: string, message: JsonValue): Promise<void> {
    await this.ask(() => this.redis.publish(this.key('channel', channel), JSON.stringify(message)));
  }

  subscribe(channel: string, listener: (message: JsonValue) => void): Promise<StateSubscription> {
    return this.ask(() => this.channels.listen(this.key('channel', channel), listener));
  }

  close(): Promise<void> {
    this.closed = true;
    this.redis.disconnect();
    this.listening.disconnect();
    return Promise.resolve();
  }

  private step(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.ask(() => runScript(this.redis, script, keys, args));
  }

  private async ask<Result>(operation: () => Promise<Result>): Promise<Result> {
    if (this.closed) throw new StateUnavailableError('the state is closed');
    this.gather();
    try {
      return await operation();
    } catch (error) {
      throw new StateUnavailableError(`Redis: ${(error as Error).message}`, { cause: error });
    }
  }

  /** What is asked in the same turn goes in one write, which takes longer than Redis does for the answer. */
  private gather(): void {
    if (this.gathering || this.redis.status !== 'ready') return;
    this.gathering = true;
    const { stream } = this.redis;
    stream.cork();
    systemClock.defer(() => {
      this.gathering = false;
      stream.uncork();
    });
  }

  /** Names may hold any characters: no two lists of them give one key. */
  private key(sort: string, ...names: (string | number)[]): string {
    return `${this.options.prefix}${sort}${names.length > 0 ? JSON.stringify(names) : ''}`;
  }

  private rowKeys(table: string): string[] {
    return [this.key('rows', table), this.key('row-ends', table)];
  }

  private news(table: string): string {
    return this.key('row-news', table);
  }
}

/** Redis takes whole ms only, and at least one. */
function wholeMs(durationMs: number): number {
  return Math.max(1, Math.ceil(durationMs));
}
