import { join } from 'node:path';
import type { IdleInstance } from '@gpuwhisk/gpu/view/view';
import { connectApi, type Api } from '../api.js';
import type { BenchContext } from '../bench.js';
import { startPlatform } from '../servers.js';
import { newPlayer, type Player } from './player.js';

/** A platform with simulated GPUs, and how to reach it. */
export interface LivePlatform {
  api: Api;
  player: Player;
}

const settings = {
  // Callers wait for as long as jobs may take to get a GPU and to run.
  GPUWHISK_BLOCKING_WAIT_MS: '600000',
  // Of the host's memory processes need less than they may have.
  GPUWHISK_POOL_MEMORY_MIB: '16384',
};

/** Starts the platform on `gpus` (`sim:rtx3090x4`) with `policy`; it is stopped with the run. */
export async function startLivePlatform(
  { cleanup, temporaryDir }: Pick<BenchContext, 'cleanup' | 'temporaryDir'>,
  gpus: string,
  policy: string,
): Promise<LivePlatform> {
  const { url } = await startPlatform(cleanup, {
    dataDir: join(temporaryDir, 'data'),
    stemCells: false,
    environment: { ...settings, GPUWHISK_GPUS: gpus, GPUWHISK_GPU__POLICY: policy },
  });
  const [api, player] = [connectApi(url), newPlayer(url)];
  cleanup.add('connections', () => {
    api.close();
    player.close();
    return Promise.resolve();
  });
  return { api, player };
}

interface ShownDevice {
  uuid: string;
  functions: { action?: string; namespace?: string; share: number; memoryMiB: number; running: number }[];
}

/** By device, in the order of their ids: the processes that idle there, as policies see them. */
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
