// The policy of a running platform: its parts without effect, and its change.
import { describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { ApiClient } from '../support/api-client.js';
import { newDataDir, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const sleeper = 'async function main({ ms }) { await new Promise((done) => setTimeout(done, ms)); return { ms }; }';
const flagsOf = (gpus: string, policy: string): string[] => [
  ...['--gpus', gpus, '--stem-cells', 'false', '--set', `gpu.policy=${policy}`],
];

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: policies are not tested on a platform.');

(hasStandIn() ? describe : describe.skip)('on simulated GPUs', () => {
  test(
    'the start names the parts of the policy without effect and what mends them',
    async () => {
      const platform = await startPlatform({ flags: flagsOf('sim:rtx3090', 'protean') });
      try {
        const lines = platform.output().split('\n');
        expect(lines.filter((line) => line.includes('without effect'))).toEqual([
          '  without effect: geometry protean: MIG cuts no GPU of type rtx3090; npm start -- --gpus sim:a100-40',
          '  without effect: procure protean: no provider of machines is set up; npm run cluster -- --set gpu.procure.provider=emulated',
        ]);
      } finally {
        await platform.stop();
      }
    },
    caseMs,
  );

  test(
    'an operator changes the policy: what runs and waits goes on, and a restart keeps it',
    async () => {
      const dataDir = newDataDir();
      const flags = flagsOf('sim:a100-40', 'exclusive');
      const deciding = async ({ api }: RunningPlatform, id: string): Promise<string[]> =>
        (await api.request<{ policy: string }[]>('GET', `../gpu/decisions?activation=${id}`)).body.map(
          ({ policy }) => policy,
        );
      let platform = await startPlatform({ dataDir, flags });
      try {
        const operator = new ApiClient(platform.url, platform.operatorAuth);
        const { api } = platform;
        await api.putAction('f', sleeper, { annotations: { gpu: { memoryMiB: 2000 } } });
        await api.putAction('g', sleeper, { annotations: { gpu: { memoryMiB: 2000 } } });
        const runs = await api.submit('f', { ms: 3000 });
        const waits = await api.submit('g', { ms: 10 });
        const { status, body } = await operator.request('PUT', '../gpu/policy', { policy: 'least-loaded' });
        expect([status, body]).toEqual([200, expect.objectContaining({ from: 'exclusive', to: 'least-loaded' })]);
        // It waited for the whole GPU, and runs beside what is there now.
        const [ended, other] = await Promise.all([api.record(waits), api.record(runs)]);
        expect([ended.response.result, other.response.result]).toEqual([{ ms: 10 }, { ms: 3000 }]);
        expect(ended.end).toBeLessThan(other.end);
        expect((await deciding(platform, waits))[0]).toBe('least-loaded');
        expect(await platform.end('SIGTERM')).toBe(0);
        platform = await startPlatform({ dataDir, flags });
        const id = await platform.api.submit('f', { ms: 1 });
        await platform.api.record(id);
        expect((await deciding(platform, id))[0]).toBe('least-loaded');
      } finally {
        await platform.stop();
      }
    },
    caseMs,
  );
});
