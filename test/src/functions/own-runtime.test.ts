// Runtimes of the operator, given by --runtimes: a server of /init and /run given as a command, and flags of kinds.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { annotation, logTexts } from '../support/api-client.js';
import { networkLack } from '../support/machine.js';
import { newDataDir, removeDataDir, startAndFail, startPlatform } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { ownManifest } from '../support/stem-cells.js';

/** A runtime of an operator: the code is a template, the result is the text with the name filled in. */
const server = `const { readFileSync } = require('fs');
const sentinel = 'XXX_THE_END_OF_A_WHISK_ACTIVATION_XXX\\n';
let template;
require('http').createServer((request, response) => {
  let text = '';
  request.on('data', (chunk) => (text += chunk)).on('end', () => {
    const answer = (status, body) => {
      const bytes = Buffer.from(JSON.stringify(body));
      response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes);
    };
    const { value } = JSON.parse(text);
    if (request.url === '/init') {
      if (!value.code.includes('NAME')) return answer(502, { error: 'The template has no NAME.' });
      template = value.code;
      return answer(200, { ok: true });
    }
    console.log('filling in');
    process.stdout.write(sentinel);
    process.stderr.write(sentinel);
    answer(200, { text: template.replace('NAME', value.name), mode: process.env.MODE, extra: readFileSync(process.argv[2], 'utf8') });
  });
}).listen(8080);`;

const dataDir = newDataDir();
const folder = join(dataDir, '..', 'own');

/** The repository's manifest with another family, and with a deprecated kind. */
function writeManifest(): string {
  mkdirSync(folder, { recursive: true });
  chmodSync(join(dataDir, '..'), 0o755);
  writeFileSync(join(folder, 'server.cjs'), server);
  writeFileSync(join(folder, 'extra.txt'), 'more');
  const manifest = ownManifest();
  manifest.runtimes.template = [
    {
      kind: 'template:1',
      command: [process.execPath, join(folder, 'server.cjs'), join(folder, 'extra.txt')],
      env: { MODE: 'quick' },
      stemCells: [{ initialCount: 1, memory: '256 MB' }],
    },
  ];
  manifest.runtimes.nodejs = (manifest.runtimes.nodejs ?? []).map((entry) =>
    entry.kind === 'nodejs:22' ? { ...entry, deprecated: true } : entry,
  );
  manifest.runtimes.swift = [
    { kind: 'swift:5.3', image: { prefix: 'openwhisk', name: 'action-swift-v5.3', tag: 'nightly' } },
  ];
  const file = join(folder, 'runtimes.json');
  writeFileSync(file, JSON.stringify(manifest));
  return file;
}

let platform: RunningPlatform;
beforeAll(async () => {
  platform = await startPlatform({ dataDir, flags: ['--runtimes', writeManifest()] });
});
afterAll(async () => {
  expect(await platform.end('SIGTERM')).toBe(0);
  removeDataDir(dataDir);
});

(networkLack === undefined ? describe : describe.skip)('a server of /init and /run', () => {
  test('runs actions, in a sandbox that sees the files it names', async () => {
    await platform.api.putAction('letter', 'Dear NAME,', { kind: 'template:default' });
    for (const name of ['Ada', 'Bob']) {
      const { status, record } = await platform.api.run('letter', { name });
      expect({ status, result: record.response.result }).toEqual({
        status: 200,
        result: { text: `Dear ${name},`, mode: 'quick', extra: 'more' },
      });
      expect(logTexts(record)).toEqual(['filling in']);
      expect(annotation(record, 'kind')).toBe('template:1');
    }
  });

  test('refuses code in its own words', async () => {
    await platform.api.putAction('letter', 'Dear nobody', { kind: 'template:1' });
    const { status, record } = await platform.api.run('letter');
    expect({ status, error: record.response.result.error }).toEqual({
      status: 502,
      error: 'The template has no NAME.',
    });
  });
});

test('a deprecated kind takes no new actions', async () => {
  const exec = { kind: 'nodejs:22', code: 'function main() {}' };
  const { status, body } = await platform.api.request('PUT', '_/actions/old', { exec });
  expect({ status, error: body.error }).toEqual({
    status: 400,
    error:
      "The 'nodejs:22' runtime is no longer supported. You may read and delete but not update or invoke this action.",
  });
});

test('kinds that cannot be run here are not offered, and the start says so', async () => {
  const exec = { kind: 'swift:5.3', code: 'func' };
  const { status, body } = await platform.api.request('PUT', '_/actions/swift', { exec });
  expect(status).toBe(400);
  expect(body.error).toContain("The specified runtime 'swift:5.3' is not supported by this platform.");
  expect(platform.output()).toContain('note: Kinds of the manifest that cannot be run here: swift:5.3.');
});

test.each([
  ['no JSON', '{', 'is not valid: '],
  [
    'two defaults',
    '{"runtimes":{"x":[{"kind":"x:1","default":true,"command":["a"]},{"kind":"x:2","default":true,"command":["a"]}]}}',
    "family 'x' has 2 defaults",
  ],
])('a manifest with %s stops the start', async (_, text, reason) => {
  const file = join(folder, 'broken.json');
  writeFileSync(file, text);
  const failed = await startAndFail({ dataDir: join(folder, 'other'), flags: ['--runtimes', file] });
  expect(failed.code).toBe(1);
  expect(failed.stderr).toContain(reason);
  expect(failed.stderr.trim().split('\n')).toHaveLength(1);
});

test('a manifest that is not there stops the start', async () => {
  const file = join(folder, 'none.json');
  const failed = await startAndFail({ dataDir: join(folder, 'other'), flags: ['--runtimes', file] });
  expect(failed).toMatchObject({
    code: 1,
    stderr: expect.stringContaining(`The runtimes manifest '${file}' cannot be read`),
  });
});
