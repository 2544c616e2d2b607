import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import AdmZip from 'adm-zip';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { executableKind, kindOfImage } from '@gpuwhisk/invoker/runtimes/proxy-runtime';
import { checkCase } from './runtime-cases.js';
import type { RuntimeCase } from './runtime-cases.js';
import type { RuntimeCatalog, RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from './runtime-harness.js';
import { zipOf } from './python-cases.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
let catalog: RuntimeCatalog;
let launch: RuntimeLaunch;

beforeAll(async () => {
  catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock, env: {} });
  launch = await catalog.launch(executableKind, []);
});
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

test.each([
  ['a program', { code: `#!/bin/sh\n# ${'ü'.repeat(100_000)}\ncat` }],
  ['an archive', { code: zipOf({ exec: '#!/bin/sh\ncat' }), binary: true }],
])('%s comes in frames of its own', async (_, given) => {
  const runtime = new RuntimeProcess(launch);
  try {
    expect(await runtime.initInFrames(given, 1000)).toMatchObject({ isError: false, body: { ok: true } });
    expect((await runtime.run({ a: 1 })).body).toEqual({ a: 1 });
  } finally {
    await runtime.close();
  }
});

const noDictionary = 'The action did not return a dictionary or array.';
const notBuilt = 'The action failed to generate or locate a binary. See logs for details.';

const scripts: RuntimeCase[] = [
  {
    name: 'the argument is a word',
    code: '#!/bin/sh\necho "{\\"got\\": $1}"',
    value: { a: 1 },
    result: { got: { a: 1 } },
  },
  {
    name: 'the argument is on standard input',
    code: '#!/bin/sh\ncat',
    value: { a: [1, 'ü☃'] },
    result: { a: [1, 'ü☃'] },
  },
  { name: 'an array', code: '#!/bin/sh\ncat', value: [1, 'x'], result: [1, 'x'] },
  {
    name: "the argument is written as Python's json does",
    code: '#!/bin/sh\nprintf "%s" "$1" | grep -qF \'{"a": "\\u00fc", "b": [1, null]}\' && echo "{}"',
    value: { a: 'ü', b: [1, null] },
    result: {},
  },
  {
    name: 'the last line is the result, the others are the log',
    code: '#!/bin/sh\necho one\necho "{}"\necho two >&2\necho \'{"a": 1}\'',
    result: { a: 1 },
    stdout: 'one\n{}\n',
    stderr: 'two\n',
  },
  {
    name: 'a last line without its end',
    code: '#!/bin/sh\necho one\nprintf \'{"a":1}\'',
    result: { a: 1 },
    stdout: 'one\n',
  },
  { name: 'spaces around it', code: '#!/bin/sh\necho \'  {"a":1}  \'', result: { a: 1 } },
  { name: 'the exit status does not matter', code: '#!/bin/sh\necho "{}"\nexit 3', result: {} },
  { name: 'own error', code: '#!/bin/sh\necho \'{"error": "sorry"}\'', result: { error: 'sorry' } },
  {
    name: 'environment of init and run',
    code: '#!/bin/sh\necho "{\\"e\\":\\"$E\\",\\"id\\":\\"$__OW_ACTIVATION_ID\\",\\"pwd\\":\\"$(ls)\\"}"',
    env: { E: 'ü' },
    result: { e: 'ü', id: 'f'.repeat(32), pwd: 'exec' },
  },
  { name: 'no output', code: '#!/bin/sh\ntrue', runError: noDictionary, stdout: '' },
  { name: 'a number', code: '#!/bin/sh\necho 42', runError: noDictionary, stdout: '42\n' },
  { name: 'no JSON', code: '#!/bin/sh\necho one\necho oops', runError: noDictionary, stdout: 'one\noops\n' },
  { name: 'an empty last line', code: '#!/bin/sh\necho "{}"\necho', runError: noDictionary, stdout: '{}\n' },
  { name: 'no interpreter', code: '#!/no/such/program\n', runError: noDictionary, stdout: /ENOENT/ },
  { name: "a script that names no interpreter is the shell's", code: 'echo {}', result: {} },
  { name: 'killed', code: '#!/bin/sh\nkill -9 $$', runError: noDictionary },
  { name: 'the socket of the frames is out of reach', code: '#!/bin/sh\necho garbage >&3\necho "{}"', result: {} },
  {
    name: "no code: OpenWhisk's stub",
    code: '',
    result: { error: 'This is a stub action. Replace it with custom logic.' },
  },
  {
    name: 'base64 of a script',
    code: Buffer.from('#!/bin/sh\necho \'{"b":1}\'').toString('base64'),
    binary: true,
    result: { b: 1 },
  },
  { name: 'base64 of nothing known', code: 'abcd', binary: true, runError: noDictionary },
];

function zip(files: Record<string, string>): string {
  const archive = new AdmZip();
  for (const [name, text] of Object.entries(files)) archive.addFile(name, Buffer.from(text), '', 0o644);
  return archive.toBuffer().toString('base64');
}

describe('executables', () => {
  test.each(scripts)('$name', (given) => checkCase(launch, given));

  test('zip: exec and the files beside it, whatever their modes', () =>
    checkCase(launch, {
      name: '',
      code: zip({
        exec: '#!/bin/sh\n. ./lib/say.sh\nsay "$(cat data)"',
        'lib/say.sh': 'say() { echo "{\\"s\\":\\"$1\\"}"; }',
        data: 'x',
      }),
      binary: true,
      result: { s: 'x' },
    }));

  test.each([
    ['without exec', zip({ other: '' }), /ENOENT.*exec/],
    ['that is torn', Buffer.from('PK\x03\x04torn').toString('base64'), /uncompressing the action Zip archive/],
  ])('zip: %s', (_, code, stderr) => checkCase(launch, { name: '', code, binary: true, initError: notBuilt, stderr }));

  test('an argument too long for a word comes on standard input alone', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      await runtime.init({ code: '#!/bin/sh\nn=$(cat | wc -c)\necho "{\\"words\\": $#, \\"bytes\\": $n}"' });
      expect((await runtime.run({ text: 'x'.repeat(131_059) })).body).toEqual({ words: 1, bytes: 131_071 });
      expect((await runtime.run({ text: 'x'.repeat(131_060) })).body).toEqual({ words: 0, bytes: 131_072 });
    } finally {
      await runtime.close();
    }
  });

  test('each run is a process of its own, in the same folder; a second init is refused', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      const code = '#!/bin/sh\necho x >> runs\necho "{\\"pid\\": $$, \\"runs\\": $(wc -l < runs)}"';
      await runtime.init({ code });
      const first = (await runtime.run({})).body as { pid: number; runs: number };
      const second = (await runtime.run({})).body as { pid: number; runs: number };
      expect([first.runs, second.runs]).toEqual([1, 2]);
      expect(second.pid).not.toBe(first.pid);
      expect((await runtime.init({ code })).body).toEqual({ error: 'Cannot initialize the action more than once.' });
    } finally {
      await runtime.close();
    }
  });

  test('lines are passed on while it runs', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      // The last line until now may be the result, so the test waits for the second.
      await runtime.init({ code: '#!/bin/sh\necho one\necho two\nwhile [ ! -e go ]; do sleep 0.02; done\necho "{}"' });
      const run = runtime.run({});
      while (runtime.stdout === '') await new Promise((done) => setTimeout(done, 5));
      expect(runtime.stdout).toBe('one\n');
      writeFileSync(join(runtime.folder, 'go'), '');
      expect((await run).body).toEqual({});
      expect(runtime.stdout).toBe('one\ntwo\n');
    } finally {
      await runtime.close();
    }
  });
});

describe('images', () => {
  test.each([
    'openwhisk/dockerskeleton',
    'openwhisk/dockerskeleton:nightly',
    'docker.io/openwhisk/dockerskeleton:1.14',
  ])('%s is served', (image) => expect(catalog.supports(kindOfImage(image))).toBe(true));

  test.each(['openwhisk/example', 'dockerskeleton', 'me/openwhisk/dockerskeleton', 'h:5000/openwhisk/dockerskeleton'])(
    '%s is refused',
    async (image) => {
      const kind = kindOfImage(image);
      expect(catalog.supports(kind)).toBe(false);
      await expect(catalog.launch(kind, [])).rejects.toMatchObject({
        message: `The image '${image}' cannot be run: of images only openwhisk/dockerskeleton is served without Docker.`,
        told: `Failed to pull container image '${image}'.`,
      });
    },
  );
});
