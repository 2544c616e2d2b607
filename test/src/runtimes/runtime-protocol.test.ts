import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { nodeLaunch } from '@gpuwhisk/invoker/runtimes/node-runtime';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess, encodeFrame } from './runtime-harness.js';
import { olderNode } from '../support/node-releases.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

interface Language {
  name: string;
  kind: string;
  launch: RuntimeLaunch;
  echo: string;
  environment: string;
  /** Prints `args.lines` lines of 99 characters to both streams. */
  print: string;
  /** Answers after `args.ms`. */
  wait: string;
}

const nodejs = `nodejs:${process.versions.node.split('.')[0]}`;
const python = catalog.manifest.runtimes.python?.[0]?.kind;
const inNode: Omit<Language, 'name' | 'launch'> = {
  kind: nodejs,
  echo: 'const main = (args) => args',
  environment: `const main = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('__OW_')))`,
  print: `function main({lines}) { for (let i = 0; i < lines; i++) { console.log('o'.repeat(99)); console.error('e'.repeat(99)) } return {} }`,
  wait: 'const main = (args) => new Promise((resolve) => setTimeout(resolve, args.ms, args))',
};
const languages: Language[] = [
  { name: nodejs, launch: await catalog.launch(nodejs, []), ...inNode },
  { name: `${nodejs} without the addon`, launch: nodeLaunch(runtimesDir, process.execPath, { addon: '' }), ...inNode },
  ...(olderNode === undefined
    ? []
    : [{ name: 'nodejs:20', launch: nodeLaunch(runtimesDir, olderNode), ...inNode, kind: 'nodejs:20' }]),
];
if (python) {
  languages.push({
    name: python,
    kind: python,
    launch: await catalog.launch(python, []),
    echo: 'def main(args):\n  return args',
    environment: `import os\ndef main(args):\n  return {k: v for k, v in os.environ.items() if k.startswith('__OW_')}`,
    print: `import sys\ndef main(args):\n  for i in range(args['lines']):\n    print('o' * 99)\n    print('e' * 99, file=sys.stderr)\n  return {}`,
    wait: 'import time\ndef main(args):\n  time.sleep(args["ms"] / 1000)\n  return args',
  });
}

describe.each(languages)('the framed protocol of $name', ({ kind, launch, echo, environment, print, wait }) => {
  let runtime: RuntimeProcess;
  const start = (env: Record<string, string> = {}): RuntimeProcess => (runtime = new RuntimeProcess(launch, env));
  afterEach(() => runtime.close());

  test('hello comes first', async () => {
    await start().frame(() => true);
    const batch = kind.startsWith('python:') ? { batch: true } : {};
    const hello = { version: 1, kind, pid: runtime.pid, ...batch, codeFrames: true };
    expect(runtime.frames).toMatchObject([{ type: 1, id: 0, text: JSON.stringify(hello) }]);
    expect(runtime.frames).toHaveLength(1);
    // A runtime that cannot load the addon reports it.
    expect(runtime.stderr).toBe('');
  });

  test('a second init is refused, and the action stays', async () => {
    start();
    await runtime.init({ code: echo });
    const second = await runtime.init({ code: echo });
    expect(second.body).toEqual({ error: 'Cannot initialize the action more than once.' });
    expect((await runtime.run({ a: 1 })).body).toEqual({ a: 1 });
  });

  test('a run before init is refused', async () => {
    const answer = await start().run({});
    expect(answer.isError).toBe(true);
    expect(answer.body).toEqual({ error: expect.stringMatching(/not initialized|no action/) });
  });

  test('each run has its own __OW_ variables', async () => {
    start();
    await runtime.init({ code: environment, env: { __OW_NAMESPACE: 'guest', __OW_ACTION_NAME: '/guest/a' } });
    const first = await runtime.run({}, { activation_id: 'one', namespace: 'guest', api_key: 'k' });
    expect(first.body).toMatchObject({ __OW_ACTIVATION_ID: 'one', __OW_NAMESPACE: 'guest', __OW_API_KEY: 'k' });
    const second = await runtime.run({}, { activation_id: 'two', deadline: '2' });
    expect(second.body).toMatchObject({ __OW_ACTIVATION_ID: 'two', __OW_DEADLINE: '2', __OW_ACTION_NAME: '/guest/a' });
  });

  test.each([
    [{}, {}],
    [{ a: '}],"{[\\"', '\\': [[{}], '"'] }, {}],
    [[{ value: 1 }], { namespace: '}{' }],
    [{ long: 'x'.repeat(20_000) }, { api_key: '"' }],
  ])('a value is told from what is beside it, %#', async (value, more) => {
    start();
    await runtime.init({ code: echo });
    expect((await runtime.run(value, more)).body).toEqual(value);
    const text = `{"activation_id":"x", "value" : ${JSON.stringify(value)}}`;
    runtime.send(3, 99, text);
    expect(JSON.parse((await runtime.frame((frame) => frame.id === 99 && frame.type === 4)).text)).toEqual(value);
  });

  test('all that was printed is in the pipes before the log frame', async () => {
    start();
    await runtime.init({ code: print });
    const answer = await runtime.run({ lines: 20_000 });
    expect(answer.stdout.length + answer.stderr.length).toBeGreaterThan(0);
    // The pipes hold output that the test has not read yet: nothing more is written after the frame.
    runtime.socket.end();
    await runtime.exited;
    expect([runtime.stdout.length, runtime.stderr.length]).toEqual([2_000_000, 2_000_000]);
  });

  test('ten megabytes go through in both directions, also in small pieces', async () => {
    start();
    await runtime.init({ code: echo });
    const text = 'ü☃x'.repeat(2_000_000);
    expect((await runtime.run({ text })).body).toEqual({ text });
    const bytes = encodeFrame(3, 77, '{"value":{"a":1}}');
    for (let at = 0; at < bytes.length; at += 2) {
      runtime.socket.write(bytes.subarray(at, at + 2));
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    expect((await runtime.frame((frame) => frame.id === 77 && frame.type === 4)).text).toBe('{"a":1}');
  });

  test.each([100_000, 5_000_000])('large code comes behind its init, in frames of %i bytes', async (pieceBytes) => {
    start();
    const [mark, text] = [kind.startsWith('python') ? '#' : '//', 'ü☃'.repeat(400_000)];
    const loaded = await runtime.initInFrames({ code: `${mark} ${text}\n${echo}` }, pieceBytes);
    expect(loaded).toMatchObject({ isError: false, body: { ok: true } });
    expect((await runtime.run({ a: 1 })).body).toEqual({ a: 1 });
  });

  test('many frames in one write are answered in order', async () => {
    start();
    await runtime.init({ code: kind.startsWith('nodejs:') ? wait : echo });
    const runs = Array.from({ length: 50 }, (_, i) => i + 100);
    if (kind.startsWith('python')) {
      runtime.socket.write(Buffer.concat(runs.map((id) => encodeFrame(3, id, JSON.stringify({ value: { id } })))));
      await runtime.frame((frame) => frame.id === 149 && frame.type === 6);
      const results = runtime.frames.filter((frame) => frame.type === 4 && frame.id >= 100);
      expect(results.map((frame) => frame.text)).toEqual(runs.map((id) => `{"id":${id}}`));
    } else {
      runtime.socket.write(Buffer.concat([100, 101].map((id) => encodeFrame(3, id, '{"value":{"ms":9}}'))));
      const refused = await runtime.frame((frame) => frame.id === 101 && frame.type === 5);
      expect(refused.text).toContain('System not ready, status is running.');
    }
  });

  test('runs overlap where concurrency is allowed', async () => {
    start({ __OW_ALLOW_CONCURRENT: 'true' });
    await runtime.init({ code: wait });
    const slow = runtime.run({ ms: 300 });
    const quick = await Promise.all([1, 2, 3, 4].map((ms) => runtime.run({ ms })));
    expect(quick.map((answer) => answer.body)).toEqual([{ ms: 1 }, { ms: 2 }, { ms: 3 }, { ms: 4 }]);
    expect(runtime.frames.some((frame) => frame.text === '{"ms":300}')).toBe(false);
    expect((await slow).body).toEqual({ ms: 300 });
  });

  test('a cancelled run is answered all the same, and bye ends the process', async () => {
    start();
    await runtime.init({ code: wait });
    const run = runtime.run({ ms: 20 });
    runtime.socket.write(encodeFrame(7, 2, '{}'));
    expect((await run).body).toEqual({ ms: 20 });
    runtime.socket.write(encodeFrame(8, 0, '{}'));
    expect(await runtime.exited).toBe(0);
  });

  test.each([
    ['an unknown type', encodeFrame(99, 1, '{}')],
    ['a type that only a runtime sends', encodeFrame(4, 1, '{}')],
    ['a payload that is no JSON', encodeFrame(3, 1, '{')],
    ['code without its init', encodeFrame(14, 1, 'x')],
    ['code of another init', Buffer.concat([encodeFrame(2, 1, '{"codeBytes":2}'), encodeFrame(14, 2, 'x')])],
    ['more code than was announced', Buffer.concat([encodeFrame(2, 1, '{"codeBytes":1}'), encodeFrame(14, 1, 'xy')])],
    ['a frame that is too long', Buffer.from([0xff, 0xff, 0xff, 0xff, 3, 1, 0, 0, 0])],
  ])('%s ends the process', async (_, bytes) => {
    await start().frame((frame) => frame.type === 1);
    runtime.socket.write(bytes);
    expect(await runtime.exited).toBe(70);
    expect(runtime.stderr).toMatch(/^Protocol violation: /);
  });

  test.each([
    ['before init', false],
    ['after init', true],
  ])('the end of the invoker ends the process %s', async (_, loaded) => {
    await start().frame((frame) => frame.type === 1);
    if (loaded) await runtime.init({ code: echo });
    runtime.socket.destroy();
    expect(await runtime.exited).toBe(0);
  });
});
