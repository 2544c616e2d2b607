import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { bareSpec } from '@gpuwhisk/invoker/containers/container-factory';
import { findPython } from '@gpuwhisk/invoker/runtimes/find-python';
import { limits, runRequest } from '../contract/container-calls.js';
import { textOf } from '../contract/containers/cases.js';
import { addCompiler, addPython, importImage, makeRoot } from './base-image.js';
import { hasDocker, startDocker } from './docker-engine.js';
import type { DockerEngine } from './docker-engine.js';
import { openDockerFactory } from './docker-harness.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
const base = 'gpuwhisk/test-base:1';
const startTimeoutMs = 240_000;

/** What `npm run images` lays out, as far as the runtimes' images need it. */
function layOut(folder: string): string {
  const paths = ['runtimes', 'node_modules/adm-zip', 'native/build/proxy', 'native/build/resident.so', 'bin'];
  for (const path of paths) cpSync(join(root, path), join(folder, 'release', path), { recursive: true });
  cpSync(join(root, 'native/entry'), join(folder, 'entry'), { recursive: true });
  return folder;
}

(hasDocker ? describe : describe.skip)('images of docker/Dockerfile', () => {
  let engine: DockerEngine;
  beforeAll(async () => {
    engine = await startDocker();
    const python = await findPython(join(engine.folder, 'python.json'), process.env);
    if (!python) throw new Error('There is no Python to make an image of.');
    const version = python.version.replace(/\.\d+$/, '');
    const folder = join(engine.folder, 'base');
    mkdirSync(folder);
    const files = makeRoot(folder, [process.execPath, '/bin/sh', '/bin/ln']);
    addCompiler(files);
    addPython(files, python.basePrefix, version);
    await importImage(engine, base, files, [`ENV PATH=${join(process.execPath, '..')}:/usr/local/bin:/usr/bin:/bin`]);
    const bases = ['NODE_IMAGE', 'PYTHON_IMAGE', 'COMPILER_IMAGE'].map((name) => `${name}=${base}`);
    const told = [...bases, `PYTHON_HOME=${python.basePrefix}`, `PYTHON_VERSION=${version}`];
    const context = layOut(join(engine.folder, 'context'));
    for (const target of ['nodejs', 'python']) {
      const flags = [
        ...told.flatMap((argument) => ['--build-arg', argument]),
        '--target',
        target,
        '-t',
        `gpuwhisk/${target}:1`,
      ];
      const args = ['build', '-q', ...flags, '-f', join(root, 'docker/Dockerfile'), context];
      await engine.docker(args, { DOCKER_BUILDKIT: '0' });
    }
  }, startTimeoutMs);
  afterAll(() => engine.stop(), startTimeoutMs);

  const codes = {
    nodejs: 'function main(args) { console.log("hi"); return { hello: args.name, user: process.getuid() }; }',
    python: 'import os\ndef main(args):\n    print("hi")\n    return {"hello": args["name"], "user": os.getuid()}\n',
  };

  test.each([
    ['nodejs', 'create'],
    ['nodejs', 'prewarm'],
    ['python', 'create'],
    ['python', 'prewarm'],
  ] as const)(
    'a %s function runs in a container that %s made; one made ahead takes the next function',
    async (family, how) => {
      const { factory, close } = await openDockerFactory(engine);
      try {
        const container = await factory[how](bareSpec(`blackbox:gpuwhisk/${family}:1`, 256));
        expect(container.canUnload).toBe(how === 'prewarm');
        for (const name of how === 'prewarm' ? ['a', 'b'] : ['a']) {
          const env = { __OW_NAMESPACE: 'guest' };
          const init = { name: 'f', main: 'main', code: codes[family], binary: false, env };
          expect(await container.init(init, limits).outcome).toEqual({ type: 'ok' });
          const deadline = String(Date.now() + 20_000);
          const call = container.run({ ...runRequest({ name }), deadline }, limits);
          expect(await call.outcome).toMatchObject({ type: 'result', result: { hello: name, user: 1000 } });
          expect((await call.logs).map(textOf)).toEqual(['hi']);
          if (how === 'prewarm') expect(await container.unload(true, limits).outcome).toEqual({ type: 'ok' });
        }
      } finally {
        await close();
      }
    },
  );
});
