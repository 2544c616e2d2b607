// Times of a function whose work grows with its input, on a simulated GPU: each size has a time alone of its own.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { GpuRecord } from '@gpuwhisk/common/gpu';
import type { FunctionPerformance } from '@gpuwhisk/controller/api/gpu-performance-views';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { runWsk } from '../cli/wsk-process.js';
import { annotation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const flags = ['--gpus', 'sim:a100-40', '--set', 'gpu.policy=faashare'];
const isHere = hasStandIn();
if (!isHere) console.info('No stand-in for a GPU is built here: sizes of inputs are not tested on a platform.');

const javascript = `async function main({ pictures = 1 }) {
  gpuwhisk.size(pictures);
  await new Promise((done) => setTimeout(done, 20 * pictures));
  return {};
}`;
const python = `import gpuwhisk, time
def main(args):
  gpuwhisk.size(args.get("pictures", 1))
  time.sleep(0.02 * args.get("pictures", 1))
  return {}`;

(isHere ? describe : describe.skip)('functions whose work grows with their input', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({ flags });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const gpuOf = async (name: string, parameters: object): Promise<GpuRecord> => {
    const { record } = await platform.api.run(name, { ...parameters });
    expect(record.response.success).toBe(true);
    return annotation(record, 'gpu') as unknown as GpuRecord;
  };
  const learned = async (name: string): Promise<FunctionPerformance['batches']> => {
    const { body } = await platform.api.request<FunctionPerformance[]>('GET', '../gpu/functions');
    return body.find((one) => one.function === `/guest/${name}`)?.batches ?? [];
  };
  const warm = async (name: string, parameters: object): Promise<void> => {
    for (let run = 0; run < 4; run += 1) await gpuOf(name, parameters);
  };

  const languages = [
    { language: 'nodejs', kind: 'nodejs:default', code: javascript, isThere: true },
    { language: 'python', kind: 'python:default', code: python, isThere: hasPython },
  ].filter(({ isThere }) => isThere);

  test.each(languages)(
    'are measured by the sizes that they report, and a larger one is no degradation ($language)',
    async ({ language, kind, code }) => {
      const name = `grows-${language}`;
      await platform.api.putAction(name, code, { kind, annotations: { gpu: { memoryMiB: 1000 } } });
      await warm(name, { pictures: 1 });
      const large = await gpuOf(name, { pictures: 64 });
      expect(large).toMatchObject({ inputSize: 64 });
      for (const told of ['degradation', 'timesUsual']) expect(large).not.toHaveProperty(told);
      await warm(name, { pictures: 64 });
      await until('both sizes are measured', async () => {
        const sizes = (await learned(name)).filter(({ runs, measured }) => runs > 1 && measured);
        return [1, 64].every((upTo) => sizes.some(({ inputs }) => inputs?.upTo === upTo));
      });
      for (const pictures of [1, 64]) {
        const { timesUsual, ...record } = await gpuOf(name, { pictures });
        expect(record).not.toHaveProperty('degradation');
        expect(timesUsual).toBeGreaterThan(0.4);
        expect(timesUsual).toBeLessThan(4);
      }
      const times = (await learned(name)).filter(({ inputs }) => inputs?.unit === 'reported');
      expect(times.map(({ slowdown }) => slowdown)).toEqual([undefined, undefined]);
      const options = ['--apihost', platform.url, '--auth', platform.auth];
      const { stdout } = await runWsk([...options, 'gpu', 'functions'], { directory: platform.dataDir });
      expect(stdout).toMatch(new RegExp(`/guest/${name} .* ≤ 64 `));
    },
    caseMs,
  );

  test(
    'and report none are measured by the bytes of their parameters',
    async () => {
      const code = 'const main = ({ text }) => new Promise((done) => setTimeout(() => done({}), text.length / 100))';
      const annotations = { gpu: { memoryMiB: 1000 } };
      await platform.api.putAction('reads', code, { kind: 'nodejs:default', annotations });
      for (const length of [1000, 20_000]) await warm('reads', { text: 'x'.repeat(length) });
      await until('both sizes are measured', async () => {
        const sizes = (await learned('reads')).filter(({ runs }) => runs > 1);
        return [1024, 32_768].every((upTo) => sizes.some(({ inputs }) => inputs?.upTo === upTo));
      });
      const [small, large] = (await learned('reads')).map(({ soloMs = 0 }) => soloMs);
      expect(small).toBeLessThan(150);
      expect(large).toBeGreaterThan(200);
    },
    caseMs,
  );
});
