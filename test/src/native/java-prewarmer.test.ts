import { createHash } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from '../runtimes/runtime-harness.js';
import { fatal, harmless, makeJar } from './java-functions.js';
import { envOf, findLanguage, makeScratch, startPrewarmer } from './prewarmer-harness.js';

const language = await findLanguage('java');
const prepareMs = 180_000;
const clean = { ok: true, verifyUs: expect.any(Number) };
const exited = { error: 'The action did not produce a valid response and exited unexpectedly.' };
let launch: RuntimeLaunch;
let jar: string;
let runtime: RuntimeProcess;

afterAll(() => language?.remove());

async function load(name: string, namespace = 'one'): Promise<unknown> {
  return (await runtime.init({ code: jar, main: `Functions#${name}`, binary: true, env: envOf(namespace) })).body;
}

async function call(name: string, value: unknown = {}): Promise<unknown> {
  expect(await load(name)).toEqual({ ok: true });
  return (await runtime.run(value)).body;
}

const unload = async (thorough = false): Promise<unknown> => (await runtime.unload(thorough)).body;

(language ? describe : describe.skip)('a Java pre-warmer', () => {
  beforeAll(async () => {
    if (!language) return;
    launch = await language.launch();
    jar = makeJar(launch);
  }, prepareMs);
  /** Whether the JVM can serve the next test: it takes a second to be ready, and is reused if it was left clean. */
  let serves = false;
  beforeEach(async () => {
    if (!serves) runtime = await startPrewarmer(launch);
    serves = false;
  });
  afterEach(async () => {
    if (!serves) await runtime.close();
  });
  afterAll(async () => {
    if (serves) await runtime.close();
  });

  test.each(Object.keys(harmless))('runs the next function right after one that %s', async (name) => {
    const before = await call('probe');
    expect(before).toMatchObject({ runs: 1, kept: 0, property: 'null', files: '[action.jar]' });
    expect(await unload()).toEqual(clean);
    const descriptors = readdirSync(`/proc/${runtime.pid}/fd`).length;
    await call(name);
    expect(await unload(true)).toEqual(clean);
    const printed = runtime.stdout;
    expect(await call('probe')).toEqual(before);
    await sleep(30);
    expect(runtime.stdout).toBe(`${printed}probe ☃\n`);
    expect(await unload(true)).toEqual(clean);
    // The JVM sometimes has one further descriptor open.
    expect(readdirSync(`/proc/${runtime.pid}/fd`).length).toBeLessThanOrEqual(descriptors);
    expect(existsSync('/etc/passwd')).toBe(true);
    serves = true;
  });

  test.each(Object.entries(fatal))('says that it is of no more use after one that %s', async (name, [, error]) => {
    await call(name);
    expect(await unload(true)).toEqual({ error: expect.stringMatching(error) });
  });

  test('an action that exits fails, and neither it nor the next one ends the JVM', async () => {
    expect(await call('exits')).toEqual(exited);
    expect(await unload()).toEqual(clean);
    expect(await call('exitsQuietly')).toEqual(exited);
    expect(await unload(true)).toEqual(clean);
    expect(await call('echo', { a: 1 })).toEqual({ a: 1 });
  });

  test.each([
    ['a JAR without the class', 'None', /ClassNotFoundException: None/],
    ['a class without the method', 'Functions#none', /NoSuchMethodException: Functions.none/],
  ])('takes other code after %s', async (_, main, error) => {
    const failed = await runtime.init({ code: jar, main, binary: true, env: envOf('one') });
    expect(failed.body).toEqual({ error: expect.stringMatching(error) });
    expect(await unload(true)).toEqual(clean);
    expect(await call('echo', { a: 1 })).toEqual({ a: 1 });
  });

  test('is not handed to another namespace, and hides a secret from the next function of its own', async () => {
    const secret = 'a-secret-of-one';
    await call('plant', { secret });
    expect(await unload(true)).toEqual(clean);
    expect(await load('probe', 'two')).toEqual({
      error: expect.stringContaining('This runtime has run code of another namespace.'),
    });
    expect(await call('probe', { secret })).toMatchObject({ secret: false, runs: 1, kept: 0, files: '[action.jar]' });
  });

  test('checks the digest before it loads anything', async () => {
    const digest = createHash('sha256').update(jar, 'base64').digest('hex');
    const request = { code: jar, main: 'Functions#echo', binary: true, env: envOf('one') };
    const wrong = await runtime.init({
      ...request,
      digest: digest.replace(/^./, (first) => (first === '0' ? '1' : '0')),
    });
    expect(wrong.body).toEqual({ error: expect.stringContaining("the code's SHA-256 is") });
    expect(readdirSync(runtime.folder)).toEqual([]);
    expect((await runtime.init({ ...request, digest })).body).toEqual({ ok: true });
  });

  test('unloads a function whose runs overlapped', async () => {
    await runtime.close();
    runtime = new RuntimeProcess(launch, { GPUWHISK_PREWARM: 'true', __OW_ALLOW_CONCURRENT: 'true' });
    expect(await load('echo')).toEqual({ ok: true });
    const answers = await Promise.all([1, 2, 3, 4].map((n) => runtime.run({ n })));
    expect(answers.map(({ body }) => body)).toEqual([1, 2, 3, 4].map((n) => ({ n })));
    expect(await unload(true)).toEqual(clean);
    expect(await call('echo', { a: 1 })).toEqual({ a: 1 });
  });

  test('empties the folders that it is told of, and follows no link out of them', async () => {
    await runtime.close();
    const scratch = makeScratch();
    try {
      runtime = await startPrewarmer(launch, { scratch: scratch.folders });
      const [a = '', b = ''] = scratch.folders;
      expect(await call('fillsFolders', { a, b })).toEqual({ a, b, seen: null });
      expect(await unload()).toEqual(clean);
      expect([readdirSync(a), readdirSync(b), readdirSync(join(a, '..'))]).toEqual([
        ['before'],
        [],
        ['a', 'b', 'outside'],
      ]);
    } finally {
      scratch.remove();
    }
  });

  test('answers a check without an action, with one, and not once it is of no more use', async () => {
    expect((await runtime.check()).body).toEqual({ ok: true });
    await call('staysAlive');
    expect((await runtime.check()).body).toEqual({ ok: true });
    expect((await runtime.unload()).isError).toBe(true);
    expect((await runtime.check()).body).toEqual({ error: 'An action left behind what cannot be put back.' });
  });

  test('a runtime that is no pre-warmer says that it cannot unload', async () => {
    const plain = new RuntimeProcess(launch);
    const hello = await plain.frame((frame) => frame.type === 1);
    expect(JSON.parse(hello.text)).not.toHaveProperty('unload');
    expect((await plain.unload()).body).toEqual({ error: 'This runtime cannot unload.' });
    await plain.close();
  });
});
