import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectApi, type Api } from '../api.js';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import { memoryOf, readTree, treeMemory } from '../processes.js';
import { freePort, startPlatform, startReference } from '../servers.js';
import { fillDataFolder } from '../store-fill.js';

const actions = 1000;
const activations = 20_000;
const starts = 5;
const listPath = '/api/v1/namespaces/_/activations?limit=200';
const readyWithinMs = 60_000;

/** Start, memory and a long list, with 1,000 actions and 20,000 activations stored. */
export const footprint: Bench = {
  summary: 'start with a filled store, memory at rest, a long list',
  parts: ['ready', 'memory', 'list'],
  async run(context) {
    const { options, cleanup, temporaryDir, say } = context;
    const dataDir = join(temporaryDir, 'data');
    say(`  storing ${actions} actions and ${activations} activations`);
    await prepare(context, dataDir);
    const wants = (part: string): boolean => options.parts.length === 0 || options.parts.includes(part);

    const measurements: Measurement[] = [];
    if (wants('ready')) measurements.push(...(await measureReady(context, dataDir)));
    const platform = await startPlatform(cleanup, { dataDir });
    if (wants('memory')) {
      say(`  resting ${options.idleSeconds} s`);
      await sleep(options.idleSeconds * 1000);
      const tree = treeMemory(readTree(platform.pid));
      measurements.push(
        { name: 'rssMiB', value: memoryOf(platform.pid).rssMiB },
        { name: 'treeRssMiB', value: tree.rssMiB },
        { name: 'treePssMiB', value: tree.pssMiB },
      );
    }
    if (wants('list')) {
      const api = connectApi(platform.url);
      cleanup.add('connection', () => api.close());
      measurements.push(medianOf('list20kMs', await measureList(context, api)));
      api.close();
    }
    await platform.stop();
    return measurements;
  },
};

/** Makes the platform write one action and one activation of its own, and copies both. */
async function prepare({ cleanup }: BenchContext, dataDir: string): Promise<void> {
  const platform = await startPlatform(cleanup, { dataDir });
  const api = connectApi(platform.url);
  cleanup.add('connection', () => api.close());
  await api.putAction('stored');
  await api.invoke('stored');
  api.close();
  // Stopping drains the platform, which stores the activations under way.
  await platform.stop();
  await fillDataFolder(dataDir, 'stored', { actions, activations });
}

/** Time from the start of the process to its first answer to /ping, over several starts, each beside one of the bare server. */
async function measureReady({ cleanup, say }: BenchContext, dataDir: string): Promise<Measurement[]> {
  const readyMs: number[] = [];
  const bareReadyMs: number[] = [];
  for (let start = 0; start < starts; start += 1) {
    const port = await freePort();
    const startedMs = performance.now();
    const starting = startPlatform(cleanup, { dataDir, port });
    let failed = false;
    starting.catch(() => (failed = true));
    const ready = await firstPing(port, startedMs, () => failed);
    const platform = await starting;
    if (ready === undefined) throw new Error(`no answer to /ping in ${readyWithinMs} ms`);
    readyMs.push(ready);
    say(`  start ${start + 1}: ready after ${ready.toFixed(0)} ms`);
    await platform.stop();
    const bare = await startReference(cleanup);
    bareReadyMs.push(bare.listeningMs);
    await bare.stop();
  }
  return [medianOf('readyMs', readyMs), medianOf('bareReadyMs', bareReadyMs)];
}

/** Time of the first answer to /ping at `port`, ms after `startedMs`; undefined after a failure or a minute. */
async function firstPing(port: number, startedMs: number, failed: () => boolean): Promise<number | undefined> {
  while (!failed() && performance.now() - startedMs < readyWithinMs) {
    if ((await ping(port)) === 200) return performance.now() - startedMs;
    await sleep(5);
  }
  return undefined;
}

/** The status of one /ping; 0 if no server listens. */
async function ping(port: number): Promise<number> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}/ping`, { signal: AbortSignal.timeout(5000) });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return 0;
  }
}

async function measureList({ options }: BenchContext, api: Api): Promise<number[]> {
  const total = (await api.json('GET', '/api/v1/namespaces/_/activations?count=true')) as { activations: number };
  if (total.activations !== activations) throw new Error(`${total.activations} activations instead of ${activations}`);
  const listMs: number[] = [];
  for (let sample = 0; sample < options.samples; sample += 1) {
    const { status, text, elapsedMs } = await api.send('GET', listPath);
    const rows = status === 200 ? (JSON.parse(text) as unknown[]).length : 0;
    if (rows !== 200) throw new Error(`the list gave ${rows} rows (status ${status})`);
    listMs.push(elapsedMs);
  }
  return listMs;
}
