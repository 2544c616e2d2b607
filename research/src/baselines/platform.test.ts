// A platform with simulated GPUs runs functions under baselines of the module that operators load.
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { startPlatform } from '@gpuwhisk/test/support/running-platform';

const caseMs = 120_000;
const sleeper = 'async function main({ ms }) { await new Promise((done) => setTimeout(done, ms)); return { ms }; }';
const functions = { strict: { memoryMiB: 2000, sloMs: 60_000 }, bestEffort: { memoryMiB: 3000 } };

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: baselines are not tested on a platform.');

// One whose order, share and place are the module's, and one whose plan is.
(hasStandIn() ? test : test.skip).each(['tgs', 'smore-literal'])(
  'policy %s runs all that comes',
  async (policy) => {
    const folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-baselines-'));
    const module = join(folder, 'baselines.mjs');
    copyFileSync(new URL('../baselines.mjs', import.meta.url), module);
    chmodSync(module, 0o644);
    const set = ['--set', `gpu.policyModules=["${module}"]`, '--set', `gpu.policy=${policy}`];
    const platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40x2', '--stem-cells', 'false', ...set] });
    try {
      const { api } = platform;
      for (const [name, gpu] of Object.entries(functions)) {
        await api.putAction(name, sleeper, { annotations: { gpu } });
      }
      const submitted = Object.keys(functions).flatMap((name) => [name, name]);
      const ids = await Promise.all(submitted.map((name) => api.submit(name, { ms: 100 })));
      const records = await Promise.all(ids.map((id) => api.record(id)));
      expect(records.map(({ response }) => response.result)).toEqual(submitted.map(() => ({ ms: 100 })));
      const { body } = await api.request<DecisionRecord[]>('GET', `../gpu/decisions?activation=${ids[0] ?? ''}`);
      expect(new Set(body.map((one) => one.policy))).toEqual(new Set([policy]));
    } finally {
      await platform.stop();
      rmSync(folder, { recursive: true });
    }
  },
  caseMs,
);
