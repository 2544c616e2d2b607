import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import AdmZip from 'adm-zip';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { loopLaunch } from '@gpuwhisk/invoker/runtimes/proxy-runtime';
import { checkCase } from './runtime-cases.js';
import type { RuntimeCase } from './runtime-cases.js';
import type { RuntimeLaunch } from '@gpuwhisk/invoker/containers/runtime-launch';
import { RuntimeProcess } from './runtime-harness.js';

const runtimesDir = fileURLToPath(new URL('../../../runtimes', import.meta.url));
const dataDir = mkdtempSync(join(tmpdir(), 'gpuwhisk-catalog-'));
const catalog = await createRuntimeCatalog({ runtimesDir, dataDir, clock: systemClock });
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

const notStarted = 'Cannot start action. Check logs for details.';
const noDictionary = 'The action did not return a dictionary or array.';

function zip(files: Record<string, string>): string {
  const archive = new AdmZip();
  for (const [name, text] of Object.entries(files)) archive.addFile(name, Buffer.from(text));
  return archive.toBuffer().toString('base64');
}

const ruby: RuntimeCase[] = [
  { name: 'main', code: 'def main(args)\n  args\nend', value: { a: [1, 'ü☃'] }, result: { a: [1, 'ü☃'] } },
  { name: 'an array', code: 'def main(args)\n  args\nend', value: [1], result: [1] },
  { name: 'another name', code: 'def niam(args)\n  { a: 1 }\nend', main: 'niam', result: { a: 1 } },
  { name: 'no parameter', code: 'def main\n  { a: 1 }\nend', result: { a: 1 } },
  {
    name: 'environment',
    code: 'E = ENV["E"]\ndef main(args)\n  { e: E, id: ENV["__OW_ACTIVATION_ID"] }\nend',
    env: { E: 'ü' },
    result: { e: 'ü', id: 'f'.repeat(32) },
  },
  {
    name: 'printing',
    code: 'def main(args)\n  puts "out ☃"\n  warn "err"\n  {}\nend',
    result: {},
    stdout: 'out ☃\n',
    stderr: 'err\n',
  },
  {
    name: 'raising',
    code: 'def main(args)\n  raise "no luck"\nend',
    result: { error: 'An error has occurred: no luck' },
    stderr: /no luck \(RuntimeError\)/,
  },
  { name: 'a string', code: 'def main(args)\n  "text"\nend', runError: noDictionary },
  { name: 'nothing', code: 'def main(args)\nend', runError: noDictionary },
  { name: 'exit', code: 'def main(args)\n  exit 3\nend', runError: 'command exited' },
  { name: 'a syntax error', code: 'def main(', initError: notStarted, stderr: /SyntaxError/ },
  { name: 'no method', code: '1', initError: notStarted, stderr: /undefined method `main'|undefined method 'main'/ },
  {
    name: 'zip',
    code: zip({ 'main.rb': 'require "lib/a"\ndef main(args)\n  { a: A }\nend', 'lib/a.rb': 'A = 7' }),
    binary: true,
    result: { a: 7 },
  },
  { name: 'zip without main.rb', code: zip({ x: '' }), binary: true, initError: notStarted, stderr: /no main\.rb/ },
  { name: 'no code', code: '', initError: 'Missing main/no code to execute.' },
];

const php: RuntimeCase[] = [
  {
    name: 'main',
    code: '<?php\nfunction main(array $args): array { return $args; }',
    value: { a: [1, 'ü☃'] },
    result: { a: [1, 'ü☃'] },
  },
  { name: 'an array', code: '<?php\nfunction main($args) { return $args; }', value: [1], result: [1] },
  { name: 'another name', code: '<?php\nfunction niam($args) { return ["a" => 1]; }', main: 'niam', result: { a: 1 } },
  { name: 'nothing', code: '<?php\nfunction main($args) { }', result: {} },
  {
    name: 'environment',
    code: '<?php\n$e = getenv("E");\nfunction main($args) { return ["e" => getenv("E"), "id" => $_ENV["__OW_ACTIVATION_ID"]]; }',
    env: { E: 'ü' },
    result: { e: 'ü', id: 'f'.repeat(32) },
  },
  {
    name: 'printing',
    code: '<?php\nfunction main($args) { echo "out ☃"; fwrite(STDERR, "err\\n"); return ["a" => 1]; }',
    result: { a: 1 },
    stdout: 'out ☃',
    stderr: 'err\n',
  },
  {
    name: 'throwing',
    code: '<?php\nfunction main($args) { throw new Exception("no luck"); }',
    runError: noDictionary,
    stdout: 'An error occurred running the action.\n',
    stderr: /no luck/,
  },
  { name: 'a string', code: '<?php\nfunction main($args) { return "text"; }', runError: noDictionary },
  { name: 'exit', code: '<?php\nfunction main($args) { exit(3); }', runError: 'command exited' },
  { name: 'a syntax error', code: '<?php\nfunction main(', initError: notStarted, stderr: /Parse error|syntax error/ },
  { name: 'no function', code: '<?php\n', initError: notStarted, stderr: /There is no function 'main'/ },
  {
    name: 'zip',
    code: zip({
      'index.php': '<?php\nrequire "lib/a.php";\nfunction main($args) { return ["a" => a()]; }',
      'lib/a.php': '<?php\nfunction a() { return 7; }',
    }),
    binary: true,
    result: { a: 7 },
  },
  { name: 'zip without index.php', code: zip({ x: '' }), binary: true, initError: notStarted, stderr: /no index\.php/ },
];

describe.each([
  ['ruby', ruby],
  ['php', php],
] as const)('%s', (family, cases) => {
  const kind = catalog.manifest.runtimes[family]?.[0]?.kind;
  const suite = kind === undefined ? test.skip : test;
  suite.each([...cases])('$name', async (given) => checkCase(await catalog.launch(kind ?? '', []), given));
});

describe('the action loop', () => {
  const launch: RuntimeLaunch = loopLaunch(runtimesDir, process.execPath, {
    kind: 'loop:1',
    sourceFile: 'exec',
    command: [],
    needs: [],
  });
  const loop = (answer: string, first = 'echo \'{"ok":true}\' >&3\n'): string =>
    `#!/bin/sh\n${first}while read -r line; do ${answer}; done`;

  test.each<RuntimeCase>([
    {
      name: 'the whole message is the line',
      code: loop('echo "$line" >&3'),
      value: { a: 1 },
      result: expect.objectContaining({ value: { a: 1 }, deadline: '1000' }),
    },
    { name: 'one that does not say that it has loaded', code: loop('echo "{}" >&3', ''), result: {} },
    {
      name: 'one that is slow to say so',
      code: loop('echo \'{"late":1}\' >&3', 'sleep 1.5; echo \'{"ok": true}\' >&3\n'),
      result: { late: 1 },
    },
    {
      name: 'its output is the log',
      code: loop('echo out; echo err >&2; echo "[1]" >&3'),
      result: [1],
      stdout: 'out\n',
      stderr: 'err\n',
    },
    { name: 'an answer that is no JSON', code: loop('echo oops >&3'), runError: noDictionary, stdout: 'oops\n' },
    { name: 'an end instead of an answer', code: loop('exit 1'), runError: 'command exited' },
    {
      name: 'an end before it has loaded',
      code: '#!/bin/sh\necho no >&2\nexit 1',
      initError: notStarted,
      stderr: 'no\n',
    },
    { name: 'a refusal', code: '#!/bin/sh\necho \'{"ok":false}\' >&3\nread x', initError: notStarted },
    { name: 'no program', code: '#!/no/such', initError: notStarted, stderr: /ENOENT/ },
  ])('$name', (given) => checkCase(launch, given));

  test('runs wait for each other, and an answer in pieces is one', async () => {
    const runtime = new RuntimeProcess(launch);
    try {
      const slow = `n=$((\${n:-0}+1)); printf '{"n":' >&3; while [ ! -e go ]; do sleep 0.02; done; echo "$n}" >&3`;
      await runtime.init({ code: loop(slow) });
      const runs = [runtime.run({}), runtime.run({})];
      writeFileSync(join(runtime.folder, 'go'), '');
      expect((await Promise.all(runs)).map(({ body }) => body)).toEqual([{ n: 1 }, { n: 2 }]);
      expect(readFileSync(join(runtime.folder, 'exec'), 'utf8')).toContain('#!/bin/sh');
    } finally {
      await runtime.close();
    }
  });
});
