// Sizes of inputs that functions report by `gpuwhisk.size(n)`, with each runtime that takes them.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { hasPython } from '../support/machine.js';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const sizeFrame = 15;
const { python = [] } = catalog.manifest.runtimes;
const nodejs = `nodejs:${process.versions.node.split('.')[0]}`;
const languages = [
  {
    kind: nodejs,
    isHere: true,
    code: `const main = ({ sizes }) => { for (const size of sizes) gpuwhisk.size(size); return { sizes: sizes.length } }`,
    late: `const main = async ({ sizes }) => { await new Promise((on) => setTimeout(on, 5)); gpuwhisk.size(sizes[0]); return {} }`,
  },
  {
    kind: python[0]?.kind ?? '',
    isHere: hasPython && python.length > 0,
    code: 'import gpuwhisk\ndef main(args):\n  for size in args["sizes"]: gpuwhisk.size(size)\n  return {"sizes": len(args["sizes"])}',
    late: 'import asyncio, gpuwhisk\nasync def main(args):\n  await asyncio.sleep(0.005)\n  gpuwhisk.size(args["sizes"][0])\n  return {}',
  },
];

for (const { kind, isHere, code, late } of languages) {
  (isHere ? describe : describe.skip)(`a function of ${kind}`, () => {
    /** The sizes that a run reports, and its result. */
    const reported = async (of: string, sizes: unknown[], env = {}): Promise<{ told: unknown[]; body: unknown }> => {
      const runtime = new RuntimeProcess(await catalog.launch(kind, []), env);
      try {
        expect(await runtime.init({ code: of })).toMatchObject({ isError: false });
        // The second run is the one whose time counts.
        for (let run = 0; run < 2; run++) {
          runtime.frames.splice(0, Infinity, ...runtime.frames.filter(({ type }) => type !== sizeFrame));
          const { body } = await runtime.run({ sizes });
          const frames = runtime.frames.filter(({ type }) => type === sizeFrame);
          const told = frames.map(({ text }) => (JSON.parse(text) as { size: unknown }).size);
          if (run === 1) return { told, body };
        }
        throw new Error('no run');
      } finally {
        await runtime.close();
      }
    };

    test('reports sizes, whole or not, one after the other', async () => {
      const sizes = [64, 0.1, 0, 1e300];
      expect(await reported(code, sizes)).toEqual({ told: sizes, body: { sizes: 4 } });
    });

    test('reports nothing for what is no size, and goes on', async () => {
      expect(await reported(code, [-1, 'x', null, {}, []])).toEqual({ told: [], body: { sizes: 5 } });
    });

    test('may report it after it has waited', async () => {
      expect((await reported(late, [3])).told).toEqual([3]);
    });

    test('reports nothing where runs overlap', async () => {
      const { told, body } = await reported(code, [64], { __OW_ALLOW_CONCURRENT: 'true' });
      expect({ told, body }).toEqual({ told: [], body: { sizes: 1 } });
    });
  });
}
