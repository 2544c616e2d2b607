import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findPython } from '@gpuwhisk/invoker/runtimes/find-toolchains';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { classPathOf, javaTools } from '../native/compile-jar.js';
import { addCompiler, addJdk, addPython, importImage, makeRoot, nodeInside, place } from './base-image.js';
import type { DockerEngine } from './docker-engine.js';

const root = fileURLToPath(new URL('../../../', import.meta.url));
/** Base of the test's images. */
export const base = 'gpuwhisk/test-base:1';
const timeoutMs = 330_000;

/** Names that `npm run images` gives the images of docker/Dockerfile. */
export const images = {
  server: 'gpuwhisk/server:latest',
  nodejs: 'gpuwhisk/action-nodejs-v22:latest',
  python: 'gpuwhisk/action-python-v3.11:latest',
  native: 'gpuwhisk/action-native-v1:latest',
  java: 'gpuwhisk/action-java-v17:latest',
} as const;

/**
 * Runs `npm run images` on a base of this machine's programs, in place of a registry's images. `java` is the launch of
 * this machine's Java runtime, for the Java image.
 */
export async function buildImages(
  engine: DockerEngine,
  targets: readonly (keyof typeof images)[],
  java?: RuntimeLaunch,
): Promise<void> {
  const python = await findPython(join(engine.folder, 'python.json'), process.env);
  if (!python) throw new Error('There is no Python to make an image of.');
  const version = python.version.replace(/\.\d+$/, '');
  const folder = join(engine.folder, 'base');
  mkdirSync(folder);
  const files = makeRoot(folder, ['/bin/sh', '/bin/ln', '/bin/cp', '/bin/rm', '/usr/sbin/nft']);
  addCompiler(files);
  addPython(files, python.basePrefix, version);
  const told = [
    `PYTHON_HOME=${python.basePrefix}`,
    `PYTHON_VERSION=${version}`,
    'PYTHON_PACKAGES=none',
    `NODE_PROGRAM=${nodeInside}`,
  ];
  if (java) {
    const home = dirname(javaTools(java));
    const jars = classPathOf(java).split(':');
    addJdk(files, home);
    place(jars.find((jar) => jar.endsWith('gson.jar')) ?? '', files, '/usr/share/java/gson.jar');
    told.push(`JAVA_HOME_INSIDE=${home}`);
  }
  await importImage(engine, base, files, ['ENV PATH=/usr/local/bin:/usr/bin:/bin']);
  told.push(...['NODE_IMAGE', 'PYTHON_IMAGE', 'COMPILER_IMAGE', 'JAVA_IMAGE'].map((name) => `${name}=${base}`));
  const flags = told.flatMap((argument) => ['--build-arg', argument]);
  await promisify(execFile)(process.execPath, [join(root, 'scripts/images.mjs'), ...flags, ...targets], {
    timeout: timeoutMs,
    maxBuffer: 16 * 1024 * 1024,
    env: { ...process.env, NODE_OPTIONS: '', DOCKER_HOST: `unix://${engine.socketPath}`, DOCKER_BUILDKIT: '0' },
  });
}
