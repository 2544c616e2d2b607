// What frameworks expect of a function with a GPU: memory, descriptors, processes, shared memory, caches of kernels.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasLauncher, hasPython } from '../support/machine.js';
import { startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const isHere = hasStandIn() && hasLauncher && hasPython;
if (!isHere) console.info('No stand-in for a GPU is built here: needs of frameworks are not tested on a platform.');

/** Tells what the process may use, and runs a program that it has put into each folder for compiled kernels. */
const looking = `import os, resource, subprocess

def compiled(name):
    folder = os.environ[name]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, 'kernel')
    with open(path, 'w') as file:
        file.write('#!/bin/sh\\necho ran\\n')
    os.chmod(path, 0o755)
    return subprocess.run([path], capture_output=True, text=True).stdout.strip()

def main(args):
    shm = os.statvfs('/dev/shm')
    caches = ['XDG_CACHE_HOME', 'TRITON_CACHE_DIR', 'TORCHINDUCTOR_CACHE_DIR', 'CUDA_CACHE_PATH']
    return {
        'files': resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        'sharedMiB': shm.f_blocks * shm.f_frsize >> 20,
        'compiled': [compiled(name) for name in caches if name in os.environ],
    }
`;
const filling = `def main(args):
    held = [b'x' * (1 << 20) for _ in range(args['mib'])]
    return {'held': len(held)}
`;

(isHere ? describe : describe.skip)('a function with a GPU and no limits', () => {
  let platform: RunningPlatform;
  beforeAll(async () => {
    platform = await startPlatform({
      flags: ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', 'limits.gpuDefaultMemoryMiB=2048'],
    });
  }, caseMs);
  afterAll(() => platform.stop(), caseMs);

  const put = (name: string, code: string, options: { gpu?: JsonObject; limits?: JsonObject } = {}): Promise<unknown> =>
    platform.api.putAction(name, code, {
      kind: 'python:3',
      ...(options.gpu && { annotations: { gpu: options.gpu } }),
      ...(options.limits && { limits: options.limits }),
    });
  const gpu = { memoryMiB: 1000 };

  test(
    'has the descriptors, shared memory and folders for compiled kernels that frameworks expect',
    async () => {
      await put('looks', looking, { gpu });
      const { files, ...rest } = (await platform.api.invokeForResult('looks')).body;
      // The host may allow fewer.
      expect(files).toBeGreaterThan(1024);
      expect(rest).toEqual({
        sharedMiB: 1024,
        compiled: ['ran', 'ran', 'ran', 'ran'],
      });
      await put('plain', looking);
      expect((await platform.api.invokeForResult('plain')).body).toEqual({ files: 1024, sharedMiB: 128, compiled: [] });
    },
    caseMs,
  );

  test(
    'may hold as much memory as a framework takes, and is told limit, use and flag where it takes more',
    async () => {
      await put('fills', filling, { gpu });
      expect((await platform.api.invokeForResult('fills', { mib: 1500 })).body).toEqual({ held: 1500 });
      await put('small', filling, { gpu, limits: { memory: 256 } });
      const { response } = await platform.api.record((await platform.api.invoke('small', { mib: 600 })).activationId);
      expect(response).toMatchObject({
        status: 'action developer error',
        result: {
          error: expect.stringMatching(
            /^The action exhausted its memory and was aborted\. Its limit is 256 MB of host memory(, and it used 25\d MB)?; --memory sets a higher limit\.$/,
          ),
        },
      });
    },
    caseMs,
  );
});
