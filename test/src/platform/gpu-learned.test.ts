// What the platform learns of functions on a simulated GPU, over a restart.
import { afterAll, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { compileGpuFunction } from './gpu-functions.js';
import { removeDataDir, startPlatform, until } from './running-platform.js';
import type { RunningPlatform } from './running-platform.js';

const caseMs = 180_000;
const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', 'gpu.policy=faashare'];
const onGpus = hasStandIn() && hasNative() ? test : test.skip;

let platform: RunningPlatform | undefined;
afterAll(async () => {
  if (platform === undefined) return;
  await platform.end('SIGTERM');
  removeDataDir(platform.dataDir);
}, caseMs);

/** How much is known, by kind. */
async function learned({ url }: RunningPlatform): Promise<Record<string, number>> {
  const response = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(10_000) });
  const lines = (await response.text()).matchAll(/^gpuwhisk_gpu_learned\{kind="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries(Array.from(lines, ([, kind = '', count]) => [kind, Number(count)]));
}

async function decided({ api }: RunningPlatform): Promise<string[]> {
  const { body } = await api.request<{ activationId: string }[]>('GET', '../gpu/decisions');
  return body.map(({ activationId }) => activationId);
}

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
    expect(await learned(first)).toEqual({ functions: 2, quotas: 1, models: 0 });
    const decisions = await decided(first);
    expect(await first.end('SIGTERM')).toBe(0);
    const { dataDir } = first;
    platform = await startPlatform({ dataDir, flags });
    expect(await learned(platform)).toEqual({ functions: 2, quotas: 1, models: 0 });
    expect(await decided(platform)).toEqual(decisions);
    expect(platform.output()).not.toContain('learned anew');
  },
  caseMs,
);
