// One measurement: a victim's calls beside hostile namespaces, on a platform of their own.
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { longestPauseMs, pauseMeter } from '@gpuwhisk/test/support/longest-pause';
import { connectApi } from '../api.js';
import type { BenchContext } from '../bench.js';
import { machineCpuS } from '../processes.js';
import { freePort, startPlatform, type Server } from '../servers.js';
import { fillDataFolder } from '../store-fill.js';
import { startHostile } from './hostile.js';
import type { HostileOrder, StruckLoad } from './hostile-process.js';
import { callVictim, callsPerS, warmVictim } from './victim.js';

/** What the hostile namespaces do: a load, or burn `cores` together. */
export type Neighbours = { load: string; records?: number } | { cores: number };

/** What was measured while the victim called. */
export interface Trial {
  latenciesMs: readonly number[];
  errors: number;
  /** Longest pause of the server's event loop, ms. */
  pauseMs: number;
  /** Processor time of the whole machine less this process's, s. Sandboxes end without being waited for, so no tree has it. */
  cpuS: number;
  /** Time that this was measured for, s. */
  tookS: number;
  struck: StruckLoad | undefined;
}

/** Time after which a load is under way, before it is measured, ms. */
const settleMs = 1000;

/** Runs a trial with `count` hostile namespaces on a new platform. `name` is of a folder in the bench's. */
export async function runTrial(
  { cleanup, options, temporaryDir }: Pick<BenchContext, 'cleanup' | 'options' | 'temporaryDir'>,
  name: string,
  neighbours: Neighbours,
  count: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<Trial> {
  const folder = join(temporaryDir, name);
  await mkdir(folder, { mode: 0o700 });
  const [dataDir, meter, port] = [join(folder, 'data'), join(folder, 'meter'), await freePort()];
  const start = (): Promise<Server> =>
    startPlatform(cleanup, {
      dataDir,
      port,
      nodeFlags: ['--import', pauseMeter],
      environment: { ...environment, PAUSE_METER: meter },
    });
  let platform = await start();
  const { url } = platform;
  const names = Array.from({ length: count }, (_, at) => `hostile${at}`);
  const [victim = '', ...keys] = await newKeys(url, dataDir, ['victim', ...names]);
  const hostile = startHostile(cleanup);
  const seconds = options.calls / callsPerS;
  const order: Extract<HostileOrder, { do: 'prepare' | 'burn' }> =
    'load' in neighbours
      ? { do: 'prepare', load: neighbours.load, url, keys }
      : { do: 'burn', url, keys, cores: neighbours.cores, seconds: seconds * 2 + 10 };
  if ('load' in neighbours) await hostile.prepare(order);
  if ('records' in neighbours && neighbours.records !== undefined) {
    await platform.stop();
    const activations = Math.floor(neighbours.records / count);
    for (const namespace of names) await fillDataFolder(dataDir, 'one', { actions: 1, activations }, namespace);
    platform = await start();
  }
  await warmVictim(url, victim);
  if (!('load' in neighbours) && neighbours.cores > 0) await hostile.prepare(order);
  await hostile.strike();
  await new Promise((done) => setTimeout(done, settleMs));
  await longestPauseMs(meter);
  const cpuS = (): number => {
    const { user, system } = process.cpuUsage();
    return machineCpuS() - (user + system) / 1e6;
  };
  const [beforeS, beganMs] = [cpuS(), performance.now()];
  const calls = await callVictim(url, victim, options.calls);
  const [spentS, tookS] = [cpuS() - beforeS, (performance.now() - beganMs) / 1000];
  const pauseMs = await longestPauseMs(meter);
  const struck = await hostile.stop();
  await platform.stop();
  return { ...calls, pauseMs, cpuS: spentS, tookS, struck };
}

/** Keys of new namespaces. */
async function newKeys(url: string, dataDir: string, names: readonly string[]): Promise<string[]> {
  const operator = connectApi(url, (await readFile(join(dataDir, 'operator.key'), 'utf8')).trim());
  const keys: string[] = [];
  for (const name of names) {
    const made = (await operator.json('PUT', `/api/v1/admin/subjects/${name}`, {})) as { uuid: string; key: string };
    keys.push(`${made.uuid}:${made.key}`);
  }
  operator.close();
  return keys;
}
