// What a user is told of an activation: by the API, and by wsk as a process.
import { describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { runWsk, withFolder } from '../cli/wsk-process.js';
import { startPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const sleeper = 'async function main({ ms }) { await new Promise((done) => setTimeout(done, ms)); return { ms }; }';

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: explanations are not tested on a platform.');

(hasStandIn() ? describe : describe.skip)('on a simulated GPU', () => {
  test(
    'a call that waited for another is explained in one line, by the API and by wsk',
    async () => {
      const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', 'gpu.policy=exclusive'];
      const platform = await startPlatform({ flags });
      try {
        const { api } = platform;
        const annotations = { gpu: { memoryMiB: 2000, sloMs: 500 } };
        await api.putAction('slow', sleeper, { annotations: { gpu: { memoryMiB: 2000 } } });
        await api.putAction('strict', sleeper, { annotations });
        await api.record(await api.submit('strict', { ms: 1 }));
        const first = await api.submit('slow', { ms: 2000 });
        const second = await api.submit('strict', { ms: 20 });
        await Promise.all([api.record(first), api.record(second)]);
        const { body } = await api.request<{ sentence: string }>('GET', `../gpu/explanations/${second}`);
        expect(body.sentence).toMatch(
          /^Queued \d\.\d\d s, ran \d+ ms.*, SLO 500 ms: missed by \d\.\d\d s because it waited \d\.\d\d s for a GPU \(it is not free\)\. What would have helped: a policy that shares GPUs /,
        );
        const access = ['--apihost', platform.url, '--auth', platform.auth];
        await withFolder(async (directory) => {
          const explained = await runWsk(['gpu', 'explain', second, ...access], { directory });
          expect(explained).toMatchObject({ code: 0, stderr: '' });
          expect(explained.stdout.split('\n')[0]).toBe(body.sentence);
          // Activations are listed by their start: the second call began last.
          const last = await runWsk(['gpu', 'explain', '--last', ...access], { directory });
          expect(last).toEqual(explained);
        });
      } finally {
        await platform.stop();
      }
    },
    caseMs,
  );
});
