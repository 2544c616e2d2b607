import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connectApi, noopCode, type Api, type Family, type StartCounts } from '../api.js';
import { medianOf, type Bench, type BenchContext, type Measurement } from '../bench.js';
import { cpuTime, readTree } from '../processes.js';
import { startPlatform, type Server } from '../servers.js';
import { percentile } from '../statistics.js';
import { openBareStarts, type BareStarts } from './cold-bare.js';

const families: readonly Family[] = ['nodejs', 'python'];
const modes = {
  cold: { prefix: 'coldMs', stemCells: false, start: 'cold' },
  stem: { prefix: 'stemMs', stemCells: true, start: 'ready' },
} as const;

/** Unmeasured starts that fill the page cache. */
const warmUps = 3;
/** Idle containers are removed soon after use, so that each start meets the same machine. */
const environment = { GPUWHISK_POOL__IDLE_CONTAINER_MS: '300' };

/** First invocations of fresh actions, without and with a stem cell. */
export const cold: Bench = {
  summary: 'cold and prewarmed start latencies per kind',
  parts: Object.keys(modes),
  async run(context) {
    const { options, cleanup, temporaryDir, say } = context;
    const measurements: Measurement[] = [];
    for (const [mode, { prefix, stemCells, start }] of Object.entries(modes)) {
      if (options.parts.length > 0 && !options.parts.includes(mode)) continue;
      const dataDir = join(temporaryDir, mode);
      const platform = await startPlatform(cleanup, { dataDir, stemCells, environment });
      const api = connectApi(platform.url);
      cleanup.add('connection', () => api.close());
      const bare = stemCells ? undefined : await openBareStarts(context);
      const { startsMs, bareMs } = await measureStarts(context, platform, api, start, bare);
      for (const family of families) {
        const each = startsMs[family];
        measurements.push(medianOf(`${prefix}.${family}`, each));
        measurements.push({ name: `${prefix}P95.${family}`, value: percentile(each, 95) });
        if (bare) measurements.push(medianOf(`bareMs.${family}`, bareMs[family]));
      }
      await bare?.close();
      say(`  ${mode} done`);
      api.close();
      await platform.stop();
    }
    return measurements;
  },
};

async function measureStarts(
  context: BenchContext,
  platform: Server,
  api: Api,
  start: 'cold' | 'ready',
  bare: BareStarts | undefined,
): Promise<Record<'startsMs' | 'bareMs', Record<Family, number[]>>> {
  const startsMs: Record<Family, number[]> = { nodejs: [], python: [] };
  const bareMs: Record<Family, number[]> = { nodejs: [], python: [] };
  const atRest = await settledProcesses(platform.pid);
  for (let index = 0; index < warmUps + context.options.samples; index += 1) {
    for (const family of families) {
      const name = `fresh-${family}-${index}`;
      await api.putAction(name, { kind: `${family}:default`, code: noopCode[family] });
      await untilQuiet(platform.pid);
      const elapsedBareMs = await bare?.start(family);
      if (elapsedBareMs !== undefined && index >= warmUps) bareMs[family].push(elapsedBareMs);
      await untilQuiet(platform.pid);
      const before = await api.startCounts();
      const { elapsedMs } = await api.invoke(name);
      expectStart(before, await api.startCounts(), start);
      if (index >= warmUps) startsMs[family].push(elapsedMs);
      await api.deleteAction(name);
      await untilProcesses(platform.pid, atRest);
    }
  }
  return { startsMs, bareMs };
}

/** Throws Error unless exactly one run began between two counts, in a container made for it or in a ready one. */
function expectStart(before: StartCounts, after: StartCounts, start: 'cold' | 'ready'): void {
  const cold = after.cold - before.cold;
  const ready = readyStarts(after) - readyStarts(before);
  const isOne = start === 'cold' ? cold === 1 && ready === 0 : cold === 0 && ready === 1;
  if (isOne && after.warm === before.warm) return;
  throw new Error(`expected one ${start} start: ${JSON.stringify({ before, after })}`);
}

function readyStarts({ prewarmed, injected }: StartCounts): number {
  return prewarmed + injected;
}

const quietForMs = 100;
const quietAtMostS = 0.02;
const waitAtMostMs = 15_000;

/** Waits until the platform and its sandboxes use hardly any processor time. Throws after 15 s. */
async function untilQuiet(pid: number): Promise<void> {
  const deadlineMs = performance.now() + waitAtMostMs;
  for (let before = usedS(pid); ;) {
    await sleep(quietForMs);
    const after = usedS(pid);
    // Killed processes take their counted time with them, so a falling sum is no sign of rest.
    if (after >= before && after - before <= quietAtMostS) return;
    before = after;
    if (performance.now() > deadlineMs) throw new Error('the platform does not become idle');
  }
}

function usedS(pid: number): number {
  const { serverS, sandboxesS } = cpuTime(readTree(pid));
  return serverS + sandboxesS;
}

/** Stem cells of some kinds start a while after the platform. */
const settledForMs = 5000;

/** Waits until the number of processes below the server stops changing, and resolves with it. Throws after 60 s. */
async function settledProcesses(pid: number): Promise<number> {
  const deadlineMs = performance.now() + 4 * waitAtMostMs;
  let count = -1;
  for (let sinceMs = 0; count < 0 || performance.now() - sinceMs < settledForMs;) {
    const { length } = readTree(pid).descendants;
    if (length !== count) sinceMs = performance.now();
    count = length;
    if (performance.now() > deadlineMs) throw new Error('the platform does not become idle');
    await sleep(quietForMs);
  }
  return count;
}

/** Waits until `count` processes are below the server: used ones gone, stem cells refilled. Throws after 15 s. */
async function untilProcesses(pid: number, count: number): Promise<void> {
  const deadlineMs = performance.now() + waitAtMostMs;
  for (;;) {
    const { length } = readTree(pid).descendants;
    if (length === count) return;
    if (performance.now() > deadlineMs) throw new Error(`${length} processes below the platform instead of ${count}`);
    await sleep(50);
  }
}
