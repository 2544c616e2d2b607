// The example on a GPU, run by the README's commands, and requests of it that run as one batch.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { runWsk } from '../cli/wsk-process.js';
import { annotation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const read = (path: string): string => readFileSync(join(repository, path), 'utf8');
const requests = 40;

(hasStandIn() && hasPython ? describe : describe.skip)('requests of a GPU function', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40'] });
  });
  afterAll(() => platform.stop());

  test("the README's lines about it", async () => {
    const [, about = ''] = read('README.md').split('--gpus ');
    const lines = about.split('\n').filter((line) => line.startsWith('wsk '));
    expect(lines).toHaveLength(3);
    const outputs: string[] = [];
    for (const line of lines) {
      const words = (line.match(/'[^']*'|\S+/g) ?? []).slice(1).map((word) => word.replaceAll("'", ''));
      const flags = ['--apihost', platform.url, '--auth', platform.auth];
      const { code, stdout } = await runWsk([...flags, ...words], { directory: repository });
      expect(code).toBe(0);
      outputs.push(stdout);
    }
    expect(outputs[0]).toBe('ok: created action classify\n');
    expect(JSON.parse(outputs[1] ?? '')).toEqual({ model: 'resnet50', batch: 1, ms: expect.any(Number) });
    expect(outputs[2]).toMatch(/^GPU .*\n.*\nGPU-.* a100-40 \(simulated\) .*\n +\/guest\/classify +50% +2048 /);
  });

  test('that wait for it run as one, and each has its own result and record', async () => {
    const { api } = platform;
    const gpu = { memoryMiB: 2048, mpsPercent: 100, batch: 8 };
    await api.putAction('classify', read('examples/gpu/classify.py'), { kind: 'python:default', annotations: { gpu } });
    await api.invoke('classify');
    const answers = await Promise.all(Array.from({ length: requests }, () => api.invoke('classify', { pictures: 2 })));
    const records = await Promise.all(answers.map(({ activationId }) => api.record(activationId)));
    expect(new Set(records.map(({ activationId }) => activationId)).size).toBe(requests);
    const sizes = records.map((record) => {
      const { batch = 1 } = annotation(record, 'gpu') as { batch?: number };
      expect(record.response.result).toMatchObject({ model: 'resnet50', batch: 2 * batch });
      return batch;
    });
    expect(Math.max(...sizes)).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(8);
  });

  test('a result that is too large fails its own request only', async () => {
    const { api } = platform;
    const code = `import time
def main(args):
    time.sleep(args.get("holdS", 0))
    return {"text": "x" * args.get("bytes", 1)}
def main_batch(requests):
    return [main(request) for request in requests]
`;
    const gpu = { memoryMiB: 2048, mpsPercent: 100, batch: 8 };
    await api.putAction('verbose', code, { kind: 'python:default', annotations: { gpu } });
    await api.invoke('verbose');
    // While one request is held, the others are collected into a batch.
    const held = await api.submit('verbose', { holdS: 1 });
    const answers = await Promise.all([100, 9_000_000, 200, 300].map((bytes) => api.invoke('verbose', { bytes })));
    await api.record(held);
    const records = await Promise.all(answers.map(({ activationId }) => api.record(activationId)));
    expect(records.map(({ response }) => response.success)).toEqual([true, false, true, true]);
    expect(JSON.stringify(records[1]?.response.result)).toContain('exceeded the allowed length');
    const sizes = records.map((record) => (annotation(record, 'gpu') as { batch?: number }).batch ?? 1);
    expect(sizes[1]).toBeGreaterThan(1);
  });

  test.each([
    ['raises', 'raise ValueError("no")', { error: 'no' }],
    ['takes longer than it may', 'time.sleep(30)', { error: expect.stringContaining('time limit') }],
    [
      'exceeds its memory',
      'args["all"] = bytearray(1 << 30)',
      { error: expect.stringContaining('exhausted its memory') },
    ],
  ])('one that %s fails itself only, if they may be repeated', async (what, fails, error) => {
    const { api } = platform;
    const name = what.replaceAll(' ', '-');
    const code = `import time
def main(args):
    time.sleep(args.get("holdS", 0))
    if args.get("bad"):
        ${fails}
    return {"n": args.get("n", 0)}
def main_batch(requests):
    return [main(request) for request in requests]
`;
    const gpu = { memoryMiB: 2048, mpsPercent: 50, batch: 8 };
    const annotations = { gpu, idempotent: true };
    await api.putAction(name, code, { kind: 'python:default', annotations, limits: { timeout: 3000, memory: 256 } });
    await api.invoke(name);
    const held = await api.submit(name, { holdS: 1 });
    const requests: JsonObject[] = [{ n: 1 }, { bad: 1 }, { n: 2 }];
    const ids = await Promise.all(requests.map((request) => api.submit(name, request)));
    const records = await Promise.all([held, ...ids].map((id) => api.record(id)));
    expect(records.map(({ response }) => response.result)).toEqual([{ n: 0 }, { n: 1 }, error, { n: 2 }]);
  });
});
