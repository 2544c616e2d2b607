import { spawnSync } from 'node:child_process';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A running Redis server. */
export interface RedisServer {
  url: string;
  port: number;
  pid: number;
  /** Kills the server. */
  stop(): Promise<void>;
}

interface Starter {
  hasRedis: boolean;
  startRedis(options: {
    dir: string;
    port?: number;
    env?: Record<string, string>;
    args?: string[];
  }): Promise<RedisServer>;
}

/** Starts Redis servers; `hasRedis` tells whether Redis is installed. */
export const { hasRedis, startRedis } = (await import(
  new URL('../../../scripts/engines/redis.mjs', import.meta.url).href
)) as Starter;

/** A Redis whose clock advances only when a test moves it. */
export interface ClockedRedis extends RedisServer {
  /** Epoch ms. */
  now(): number;
  moveClock(durationMs: number): Promise<void>;
}

/** Starts a Redis whose clock stands still at the current time, or returns undefined without a C compiler. */
export async function startClockedRedis(): Promise<ClockedRedis | undefined> {
  const dir = await mkdtemp(join(tmpdir(), 'gpuwhisk-redis-'));
  const library = join(dir, 'moved-clock.so');
  const source = fileURLToPath(new URL('../../engines/moved-clock.c', import.meta.url));
  const compiled = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-Wall', '-Wextra', '-Werror', '-o', library, source]);
  if (compiled.error !== undefined) {
    await rm(dir, { recursive: true });
    return undefined;
  }
  if (compiled.status !== 0) throw new Error(compiled.stderr.toString());
  const clock = await open(join(dir, 'clock'), 'w');
  let nowMs = Date.now();
  const set = async (): Promise<void> => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(nowMs) * 1000n);
    await clock.write(bytes, 0, 8, 0);
  };
  await set();
  const server = await startRedis({ dir, env: { LD_PRELOAD: library, MOVED_CLOCK: join(dir, 'clock') } });
  return {
    ...server,
    now: () => nowMs,
    moveClock: (durationMs) => {
      nowMs += Math.ceil(durationMs);
      return set();
    },
    stop: async () => {
      await server.stop();
      await clock.close();
      await rm(dir, { recursive: true });
    },
  };
}
