// A platform with simulated GPUs or none, its clients, and its state as the simulator takes it.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { IdleInstance } from '@gpuwhisk/gpu/simulate/node-rows';
import { connectApi, type Api } from '../api.js';
import type { BenchContext } from '../bench.js';
import { startPlatform } from '../servers.js';
import { newPlayer, type Player } from './player.js';

/** What a live part needs of its bench. */
export type LiveContext = Pick<BenchContext, 'cleanup' | 'temporaryDir' | 'say'>;

/** A platform and clients of it. */
export interface LivePlatform {
  /** As the guest. */
  api: Api;
  /** As an operator. */
  operator: Api;
  player: Player;
  stop(): Promise<void>;
}

const settings = {
  // Callers wait long enough for jobs to get a GPU and to run.
  GPUWHISK_BLOCKING_WAIT_MS: '600000',
  // Processes need less of the host's memory than their limit.
  GPUWHISK_POOL_MEMORY_MIB: '16384',
};

/**
 * Starts a platform on `gpus` (`sim:rtx3090x4`, `none`) with further settings; its data is in a folder of `name`.
 * Functions are injected into processes that are ready, as by default. `cleanup` stops the platform.
 */
export async function startLivePlatform(
  { cleanup, temporaryDir }: Pick<LiveContext, 'cleanup' | 'temporaryDir'>,
  name: string,
  gpus: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<LivePlatform> {
  const dataDir = join(temporaryDir, name);
  const server = await startPlatform(cleanup, {
    dataDir,
    environment: { ...settings, ...environment, GPUWHISK_GPUS: gpus },
  });
  const { url } = server;
  const api = connectApi(url);
  const operator = connectApi(url, (await readFile(join(dataDir, 'operator.key'), 'utf8')).trim());
  const player = newPlayer(url);
  const close = (): void => [api, operator, player].forEach((client) => client.close());
  cleanup.add('connections', () => Promise.resolve(close()));
  const stop = (): Promise<void> => {
    close();
    return server.stop();
  };
  return { api, operator, player, stop };
}

interface ShownDevice {
  uuid: string;
  functions: { action?: string; namespace?: string; share: number; memoryMiB: number; running: number }[];
}

/** Idle processes by device, in the order of the devices' ids, in the form that policies see. */
export async function idleInstances(api: Api): Promise<IdleInstance[][]> {
  const devices = (await api.json('GET', '/api/v1/gpu/devices')) as ShownDevice[];
  return devices.map(({ functions }) =>
    functions.flatMap(({ action, namespace, share, memoryMiB, running }) =>
      running > 0 || action === undefined || namespace === undefined
        ? []
        : [{ function: action, namespace, share, memoryMiB }],
    ),
  );
}
