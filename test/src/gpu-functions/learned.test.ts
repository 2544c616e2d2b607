// Learned data about functions on a simulated GPU, over a restart.
import { afterAll, expect, test } from '@jest/globals';
import type { FunctionPerformance } from '@gpuwhisk/controller/api/gpu-performance-views';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { runWsk } from '../cli/wsk-process.js';
import { compileGpuFunction } from './gpu-functions.js';
import { removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 180_000;
const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', 'gpu.policy=faashare'];
const onGpus = hasStandIn() && hasNative() ? test : test.skip;

let platform: RunningPlatform | undefined;
afterAll(async () => {
  if (platform === undefined) return;
  await platform.end('SIGTERM');
  removeDataDir(platform.dataDir);
}, caseMs);

/** Number of learned items, by kind. */
async function learned({ url }: RunningPlatform): Promise<Record<string, number>> {
  const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) });
  const lines = (await response.text()).matchAll(/^gpuwhisk_gpu_learned\{kind="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries(Array.from(lines, ([, kind = '', count]) => [kind, Number(count)]));
}

async function decided({ api }: RunningPlatform): Promise<string[]> {
  const { body } = await api.request<{ activationId: string }[]>('GET', '../gpu/decisions');
  return body.map(({ activationId }) => activationId);
}

async function slowdowns({ api }: RunningPlatform): Promise<unknown[]> {
  const { body } = await api.request<FunctionPerformance[]>('GET', '../gpu/functions');
  return body
    .toSorted((one, other) => one.function.localeCompare(other.function))
    .map(({ batches }) => batches[0]?.slowdown);
}

const listed = async ({ url, auth, dataDir }: RunningPlatform): Promise<string> =>
  (await runWsk(['--apihost', url, '--auth', auth, 'gpu', 'functions'], { directory: dataDir })).stdout;

onGpus(
  'profiles, the shares of a set that ran together, and decisions are there after a restart',
  async () => {
    const first = (platform = await startPlatform({ flags }));
    const code = compileGpuFunction();
    const names = ['one', 'other'];
    for (const name of names) {
      const annotations = { gpu: { memoryMiB: 1500, mpsPercent: 50 } };
      await first.api.putAction(name, code, { kind: 'native:1', annotations });
      await first.api.run(name, { deviceMs: 500 });
    }
    await until(
      'both ran warm, alone and beside each other all the time',
      async () => {
        for (const name of names) await first.api.run(name, { deviceMs: 500 });
        await Promise.all(names.map((name) => first.api.run(name, { deviceMs: 500 })));
        return (await learned(first)).quotas === 1;
      },
      90_000,
    );
    expect(await learned(first)).toEqual({ functions: 2, quotas: 1, models: 0, pairs: 0, pairModels: 0 });
    // Predicted and measured slowdowns of runs beside each other, over HTTP and as text for a terminal.
    const compared = await slowdowns(first);
    expect(compared).toEqual(
      Array(2).fill({ predicted: expect.any(Number), measured: expect.any(Number), runs: expect.any(Number) }),
    );
    expect(await listed(first)).toMatch(/ Runs +Slowdown +Predicted .*\n(.* [1-9]\d* +\d+\.\d\d +\d+\.\d\d .*\n){2}$/);
    const decisions = await decided(first);
    expect(await first.end('SIGTERM')).toBe(0);
    const { dataDir } = first;
    platform = await startPlatform({ dataDir, flags });
    expect(await learned(platform)).toEqual({ functions: 2, quotas: 1, models: 0, pairs: 0, pairModels: 0 });
    expect(await decided(platform)).toEqual(decisions);
    expect(await slowdowns(platform)).toEqual(compared);
    expect(platform.output()).not.toContain('will be measured again');
  },
  caseMs,
);
