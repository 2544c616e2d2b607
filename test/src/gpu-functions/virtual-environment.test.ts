// Python functions see the packages of a virtual environment that lies outside of the system's folders.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasPythonPairs } from '@gpuwhisk/invoker/runtimes/python-runtime';
import { annotation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const isHere = hasPython && hasStandIn() && hasPythonPairs();
const kind = 'python:default';

const code = `import subprocess, sys
import only_there

def main(args):
    child = [sys.executable, "-c", "import only_there; print(only_there.__file__)"]
    return {"file": only_there.__file__, "child": subprocess.run(child, capture_output=True, text=True).stdout.strip()}
`;

(isHere ? describe : describe.skip)('a virtual environment', () => {
  let folder: string;
  let packages: string;
  let platform: RunningPlatform;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-venv-'));
    const home = join(folder, 'torch');
    execFileSync('python3', ['-m', 'venv', '--without-pip', home], { timeout: caseMs / 2 });
    const [version = ''] = readdirSync(join(home, 'lib'));
    packages = join(home, 'lib', version, 'site-packages');
    mkdirSync(packages, { recursive: true });
    writeFileSync(join(packages, 'only_there.py'), 'answer = 42\n');
    const env = { PATH: `${join(home, 'bin')}:${process.env.PATH}` };
    platform = await startPlatform({ flags: ['--gpus', 'sim:h100'], env });
  }, caseMs);
  afterAll(async () => {
    await platform.stop();
    rmSync(folder, { recursive: true });
  }, caseMs);

  const run = async (name: string): Promise<{ start: unknown }> => {
    const { record } = await platform.api.run(name);
    const file = join(packages, 'only_there.py');
    expect(record.response.result).toEqual({ file, child: file });
    const gpu = annotation(record, 'gpu') as JsonObject | undefined;
    return { start: gpu?.start };
  };

  test(
    'its packages are there for a function without a GPU',
    async () => {
      await platform.api.putAction('plain', code, { kind });
      await run('plain');
    },
    caseMs,
  );

  test(
    'its packages are there for a function with a GPU, started or injected',
    async () => {
      const starts = new Set<unknown>();
      for (let count = 0; count < 10 && !(starts.has('cold') && starts.has('injected')); count++) {
        const name = `gpu${count}`;
        await platform.api.putAction(name, code, { kind, annotations: { gpu: { memoryMiB: 1500, mpsPercent: 50 } } });
        starts.add((await run(name)).start);
        await new Promise((resolve) => setTimeout(resolve, 1500)); // A container is made ready meanwhile.
      }
      expect([...starts]).toEqual(expect.arrayContaining(['cold', 'injected']));
    },
    caseMs,
  );
});
