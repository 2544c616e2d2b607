// The module of docs/policy-modules.md: its types, and its policy and token policy on a platform with a simulated GPU.
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { devicesOf } from './gpu-functions.js';
import { ApiClient } from '../support/api-client.js';
import { startAndFail, startPlatform, until } from '../support/running-platform.js';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const page = readFileSync(join(root, 'docs/policy-modules.md'), 'utf8');
const [, modulePath = '', source = ''] = /^```js\n\/\/ (\S+)\n([^]*?)^```$/m.exec(page) ?? [];
const caseMs = 120_000;

let repository: string;
let module: string;
beforeAll(() => {
  repository = mkdtempSync(join(tmpdir(), 'gpuwhisk-own-policies-'));
  module = join(repository, modulePath);
  mkdirSync(dirname(module));
  writeFileSync(module, source);
  chmodSync(dirname(module), 0o755);
  chmodSync(module, 0o644);
  const [, options = ''] = [...page.matchAll(/^```json\n([^]*?)^```$/gm)].map(([, block]) => block).slice(1);
  writeFileSync(join(repository, 'tsconfig.json'), options);
  symlinkSync(join(root, 'node_modules'), join(repository, 'node_modules'));
});
afterAll(() => rmSync(repository, { recursive: true }));

const check = (): Promise<{ stdout: string }> =>
  promisify(execFile)(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', repository], {
    env: { ...process.env, NODE_OPTIONS: '' },
  });

test(
  'the types of the interface accept the module, and refuse a stage of another shape',
  async () => {
    await expect(check()).resolves.toMatchObject({ stdout: '' });
    writeFileSync(module, source.replace('isOverdue: false', 'overdue: false'));
    await expect(check()).rejects.toMatchObject({ stdout: expect.stringContaining('isOverdue') });
    writeFileSync(module, source);
  },
  caseMs,
);

const python = `
import ctypes, time
cuda = ctypes.CDLL('libcuda.so.1')
def main(args):
    context = ctypes.c_void_p()
    made = [cuda.cuInit(0), cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), cuda.cuCtxSetCurrent(context)]
    time.sleep(args.get('seconds', 0))
    return {'made': made, 'at': time.time()}
`;

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: policy modules are not tested on a platform.');

(hasStandIn() ? test : test.skip)(
  'its policy decides on a platform, its token policy issues tokens, and a trial of it runs in a thread',
  async () => {
    const config = join(repository, 'config.json');
    const gpu = { policyModules: [`./${modulePath}`], policy: 'large-first', tokens: 'by-limit', prewarm: 0 };
    writeFileSync(config, JSON.stringify({ gpu }));
    const platform = await startPlatform({
      flags: ['--config', config, '--gpus', 'sim:a100-40', '--stem-cells', 'false'],
    });
    try {
      const { api } = platform;
      const sizes = { whole: 38_000, small: 21_000, large: 30_000 };
      for (const [name, memoryMiB] of Object.entries(sizes)) {
        await api.putAction(name, python, { kind: 'python:3', annotations: { gpu: { memoryMiB } } });
      }
      const whole = await api.submit('whole', { seconds: 4 });
      await until(
        'it runs',
        async () => (await devicesOf(platform))[0]?.functions.some(({ running }) => running > 0) === true,
      );
      const small = await api.submit('small', {});
      const large = await api.submit('large', {});
      const at = async (id: string): Promise<number> => {
        const { result } = (await api.record(id)).response;
        expect(result).toMatchObject({ made: [0, 0, 0] });
        return (result as { at: number }).at;
      };
      const [wholeAt, smallAt, largeAt] = [await at(whole), await at(small), await at(large)];
      expect([wholeAt < largeAt, largeAt < smallAt]).toEqual([true, true]);
      // By dilu it would be NONE, as each function is alone.
      const state = async (): Promise<unknown> => (await devicesOf(platform))[0]?.functions[0]?.launches?.state;
      await until('its tokens are issued by the module', async () => (await state()) === 'CONTENTION', 30_000);
      const { body } = await api.request<DecisionRecord[]>('GET', `../gpu/decisions?activation=${large}`);
      expect(body.map(({ policy }) => policy)).toEqual(body.map(() => 'large-first'));

      const operator = new ApiClient(platform.url, platform.operatorAuth);
      const shown = (await operator.request<JsonObject>('GET', '../gpu/policy')).body;
      const sha256 = expect.stringMatching(/^[0-9a-f]{64}$/);
      expect(shown).toMatchObject({ policy: 'large-first', modules: [{ path: module, sha256 }] });
      expect((await api.request<JsonObject>('GET', '../gpu/policy')).body).not.toHaveProperty('modules');
      const arrivals = [
        { function: 'first', atMs: 0, soloMs: 1000, memoryMiB: 38_000 },
        { function: 'small', atMs: 1, soloMs: 10, memoryMiB: 21_000 },
        { function: 'large', atMs: 2, soloMs: 1000, memoryMiB: 30_000 },
      ];
      const tried = await operator.request<{ results: JsonObject[] }>('POST', '../gpu/policy/trials', {
        ...{ policy: { base: 'large-first', order: 'fifo' }, arrivals },
      });
      expect(tried.body.results).toMatchObject([{ policy: 'large-first' }, { policy: 'large-first order=fifo' }]);
      // The small task waits for the large one under the module's order only.
      const [own, fifo] = tried.body.results as { meanWaitMs: number }[];
      expect(own?.meanWaitMs).toBeGreaterThan(fifo?.meanWaitMs ?? Infinity);
    } finally {
      await platform.stop();
    }
  },
  caseMs,
);

test(
  'a platform does not start with a module that is not sound, and says why in one line',
  async () => {
    const broken = join(repository, 'broken.mjs');
    writeFileSync(broken, "throw new Error('no licence');");
    const { code, stdout, stderr } = await startAndFail({ flags: ['--set', `gpu.policyModules=["${broken}"]`] });
    expect({ code, stdout, stderr }).toEqual({
      ...{ code: 1, stdout: '', stderr: `gpu.policyModules: ${broken}: no licence\n` },
    });
  },
  caseMs,
);
