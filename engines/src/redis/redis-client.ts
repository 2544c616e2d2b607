import { createHash } from 'node:crypto';
import { Redis, ReplyError } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
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
