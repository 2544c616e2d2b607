import { Redis, ReplyError } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { createHash } from 'node:crypto';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { JsonValue } from '@gpuwhisk/common/json';
import type { StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import type { Script } from './scripts.js';

export interface RedisClientOptions {
  /** `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS. */
  url: string;
  /** For one call, and for a connection to be made. */
  timeoutMs: number;
  /** Told of connections that were lost. */
  onWarning?: (warning: Error) => void;
}

const maxReconnectMs = 1000;
/** How often a connection is asked whether Redis is still at its other end, and how long the system waits to ask, ms. */
const pingMs = 1000;
const keepAliveMs = 10_000;
/** A connection that was given up and does not close in order is destroyed after so long, ms. */
const disconnectMs = 100;

/**
 * What every connection to Redis is made with: a call fails when it takes too long and at once while there is no
 * connection, and is never sent twice. Once connected it is connected again for as long as it is not closed, at most a
 * second apart.
 */
function redisOptions(timeoutMs: number, wasConnected: () => boolean): RedisOptions {
  return {
    lazyConnect: true,
    commandTimeout: timeoutMs,
    connectTimeout: timeoutMs,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    // RedisChannels does: ioredis forgets channels whose connection is lost before Redis has confirmed them.
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
    keepAlive: keepAliveMs,
    disconnectTimeout: disconnectMs,
    retryStrategy: (times) => (wasConnected() ? Math.min(maxReconnectMs, 20 * 2 ** Math.min(times, 10)) : null),
    // A primary that has become a replica.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
}

/** Connects to Redis. Rejects with StateUnavailableError, which names the server without its password. */
export async function connectRedis({ url, timeoutMs, onWarning }: RedisClientOptions): Promise<Redis> {
  let isConnected = false;
  let lastError: Error | undefined;
  const redis = new Redis(
    url,
    redisOptions(timeoutMs, () => isConnected),
  );
  redis.on('error', (error: Error) => {
    lastError = error;
    if (isConnected) onWarning?.(error);
  });
  try {
    await redis.connect();
  } catch (error) {
    const { message } = lastError ?? (error as Error);
    throw new StateUnavailableError(`Redis at ${withoutPassword(url)} cannot be used: ${message}`);
  }
  isConnected = true;
  keepAsking(redis, onWarning);
  return redis;
}

/**
 * Gives a connection up on which Redis does not answer in time, so that it is made again: one that only listens would not
 * notice otherwise. Ends with the connection.
 */
function keepAsking(redis: Redis, onWarning: RedisClientOptions['onWarning']): void {
  let isOver = false;
  const ask = async (): Promise<void> => {
    try {
      if (redis.status === 'ready') await redis.ping();
    } catch (error) {
      if (redis.status === 'ready') {
        onWarning?.(new Error(`a connection to Redis was given up: ${(error as Error).message}`));
        redis.disconnect(true);
      }
    }
    if (!isOver) timer = systemClock.setBackgroundTimer(pingMs, () => void ask());
  };
  let timer = systemClock.setBackgroundTimer(pingMs, () => void ask());
  redis.once('end', () => {
    isOver = true;
    timer.cancel();
  });
}

function withoutPassword(url: string): string {
  if (!URL.canParse(url)) return 'an address that is no URL';
  const { protocol, host, pathname } = new URL(url);
  return `${protocol}//${host}${pathname}`;
}

const digests = new WeakMap<Script, string>();

/** Runs a script, which Redis has from earlier calls as a rule. */
export async function runScript(
  redis: Redis,
  script: Script,
  keys: readonly string[],
  args: readonly (string | number)[],
): Promise<unknown> {
  let digest = digests.get(script);
  if (digest === undefined) {
    digest = createHash('sha1').update(script.lua).digest('hex');
    digests.set(script, digest);
  }
  try {
    return await redis.evalsha(digest, keys.length, ...keys, ...args);
  } catch (error) {
    if (!(error instanceof ReplyError) || !(error as Error).message.startsWith('NOSCRIPT')) throw error;
    return redis.eval(script.lua, keys.length, ...keys, ...args);
  }
}

type Listener = (message: JsonValue) => void;

/** Who listens to which channel, on a connection of its own; after a loss of Redis they listen again by themselves. */
export class RedisChannels {
  private readonly listeners = new Map<string, Set<Listener>>();

  constructor(
    private readonly redis: Redis,
    private readonly onWarning: (warning: Error) => void,
  ) {
    redis.on('message', (channel: string, text: string) => this.hear(channel, text));
    redis.on('ready', () => void this.listenAgain());
  }

  /** Resolves when no message is missed any more. */
  async listen(channel: string, listener: Listener): Promise<StateSubscription> {
    const listeners = this.listeners.get(channel) ?? new Set();
    this.listeners.set(channel, listeners);
    // Who listens twice with one function hears twice.
    const own: Listener = (message) => listener(message);
    listeners.add(own);
    try {
      await this.redis.subscribe(channel);
    } catch (error) {
      this.forget(channel, own);
      throw error;
    }
    return {
      close: () => {
        this.forget(channel, own);
        return Promise.resolve();
      },
    };
  }

  /** Subscribes to all channels on a new connection; where Redis does not confirm it, the connection is replaced. */
  private async listenAgain(): Promise<void> {
    const channels = [...this.listeners.keys()];
    if (channels.length === 0) return;
    try {
      await this.redis.subscribe(...channels);
    } catch (error) {
      this.onWarning(new Error(`channels of Redis are not listened to yet: ${(error as Error).message}`));
      if (this.redis.status === 'ready') this.redis.disconnect(true);
    }
  }

  private forget(channel: string, listener: Listener): void {
    const listeners = this.listeners.get(channel);
    if (listeners === undefined || !listeners.delete(listener) || listeners.size > 0) return;
    this.listeners.delete(channel);
    // Where it fails, messages come without a subscriber.
    this.redis.unsubscribe(channel).catch((error: unknown) => this.onWarning(error as Error));
  }

  private hear(channel: string, text: string): void {
    const listeners = [...(this.listeners.get(channel) ?? [])];
    try {
      for (const listener of listeners) listener(JSON.parse(text) as JsonValue);
    } catch (error) {
      this.onWarning(new Error(`a message on ${channel} was left out: ${(error as Error).message}`));
    }
  }
}
