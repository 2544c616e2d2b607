// The policy of a running platform: its parts without effect.
import { describe, expect, test } from '@jest/globals';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { startPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
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
});
