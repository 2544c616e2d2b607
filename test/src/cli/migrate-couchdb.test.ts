// Migration from documents in OpenWhisk's layout, served by a small server of the CouchDB protocol.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '@gpuwhisk/common/json';
import { alice, bob, operator, startApi } from '../api/harness.js';
import type { Api } from '../api/harness.js';
import { startFakeCouchdb } from './fake-couchdb.js';
import type { FakeCouchdb } from './fake-couchdb.js';
import { encryptParameter, fill, get, keyOf, large, migrateIn, put } from './migrate-harness.js';
import { certificate, privateKey } from './self-signed.js';
import type { WskResult } from './wsk-process.js';

const prefix = 'whisk_local_';
let folder: string;
let source: Api;
let target: Api;
let couchdb: FakeCouchdb;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'migrate-couchdb-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  [source, target, couchdb] = [await startApi(), await startApi(), await startFakeCouchdb()];
});
afterEach(async () => {
  await source.close();
  await target.close();
  await couchdb.close();
});

const to = (): string[] => ['--to', target.url, '--to-auth', keyOf(operator)];
const carry = (...args: string[]): Promise<WskResult> =>
  migrateIn(folder, ['--from-couchdb', couchdb.url, '--db-prefix', prefix, ...to(), ...args]);
const whisks = `${prefix}whisks`;

/** The documents of a database without their revisions. */
async function stored(api: Api, database: 'subjects' | 'whisks' | 'activations'): Promise<JsonObject[]> {
  const all = await api.store.list(database, { limit: 1000 });
  return all.map((document) => ({ ...document, _rev: null }));
}

const entity = { version: '0.0.3', publish: false, updated: 1_500_000_000_000, annotations: [], parameters: [] };
const limits = { timeout: 60_000, memory: 256, logs: 10, concurrency: 1 };

test('documents come over as they are, code and all, and a second run finds them equal', async () => {
  await fill(source);
  await encryptParameter(source);
  await put(source, 'actions/bobs', { exec: { kind: 'nodejs:20', code: 'x' } }, bob);
  await couchdb.copy(source.store, prefix);
  couchdb.put(whisks, { _id: '_design/whisks.v2.1.0', views: {} });

  const dry = await carry('--dry-run');
  expect(dry).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^package: +1 to create\naction: +4 to create\n/),
  });
  expect(await stored(target, 'whisks')).toEqual([]);

  const first = await carry();
  expect(first).toMatchObject({ code: 0, stderr: '' });
  expect(first.stdout).toBe(
    'package:    1 created\naction:     4 created\nbinding:    1 created\nsequence:   3 created\n' +
      'trigger:    2 created\nrule:       2 created\n\nNote:\n' +
      '  namespace alice: has parameters encrypted with aes-128: the target needs the key (parameterStorage.keys)\n' +
      '  trigger alice/tick: its feed /alice/tools/packed has to be asked for events anew\n',
  );
  expect(await stored(target, 'whisks')).toEqual(await stored(source, 'whisks'));
  for (const path of ['actions/plain', 'actions/outer', 'packages/bound', 'rules/off', 'triggers/tick']) {
    expect(await get(target, path)).toEqual(await get(source, path));
  }
  expect(await target.store.list('activations', { limit: 1 })).toEqual([]);

  const requests = couchdb.requests.length;
  const second = await carry();
  expect(second.stdout).toMatch(/^package: +1 equal already\naction: +4 equal already\n/);
  // OpenWhisk stores digests of inline code only: attached code is downloaded again for the comparison.
  const attachments = couchdb.requests.slice(requests).filter((path) => path.split('/').length > 2);
  expect(attachments).toEqual([expect.stringContaining(`${whisks}/alice%2Fplain/`)]);
});

test('old documents: attachments without a digest, jars, and no entity type', async () => {
  const base = { namespace: 'alice', ...entity, limits };
  const reference = { attachmentName: 'codefile', attachmentType: 'text/plain' };
  couchdb.put(
    whisks,
    { _id: 'alice/old', name: 'old', ...base, exec: { kind: 'nodejs:20', binary: false, code: reference } },
    { codefile: large },
  );
  const jar = { attachmentName: 'jarfile', attachmentType: 'application/java-archive' };
  couchdb.put(
    whisks,
    { _id: 'alice/jar', name: 'jar', ...base, exec: { kind: 'java:8', binary: true, main: 'Main', jar } },
    { jarfile: 'PK' },
  );
  const inline = { kind: 'nodejs:20', code: 'function main() {}', binary: false };
  couchdb.put(whisks, { _id: 'alice/inline', name: 'inline', ...base, exec: inline });
  expect(await carry()).toMatchObject({ code: 0, stdout: 'action:     3 created\n' });
  expect((await get(target, 'actions/old')).exec).toMatchObject({ kind: 'nodejs:20', code: large, binary: false });
  expect((await get(target, 'actions/jar')).exec).toMatchObject({ main: 'Main', code: 'UEs=', binary: true });
  expect((await get(target, 'actions/inline')).exec).toMatchObject({ code: 'function main() {}' });
  expect(await get(target, 'actions/old')).toMatchObject({ version: '0.0.3', updated: entity.updated });
  expect(await carry()).toMatchObject({ code: 0, stdout: 'action:     3 equal already\n' });
});

test('what cannot be carried is told, and the rest is', async () => {
  const put1 = (name: string, fields: JsonObject): void =>
    couchdb.put(whisks, { _id: `alice/${name}`, namespace: 'alice', name, ...entity, ...fields });
  const code = (attachmentName: string, digest = 'sha256-0'): JsonObject => ({
    limits,
    entityType: 'action',
    exec: { kind: 'nodejs:20', binary: false, code: { attachmentName, attachmentType: 'text/plain', digest } },
  });
  put1('elsewhere', code('s3:abc'));
  put1('gone', code('couch:abc'));
  put1('damaged', code('couch:abc'));
  couchdb.put(
    whisks,
    { _id: 'alice/damaged', namespace: 'alice', name: 'damaged', ...entity, ...code('couch:abc') },
    {
      abc: 'other',
    },
  );
  put1('cobol', { limits, exec: { kind: 'cobol:85', code: 'x', binary: false } });
  put1('strange', { entityType: 'widget' });
  put1('taken', { limits: {}, entityType: 'trigger' });
  await put(target, 'packages/taken', {});
  put1('other', { binding: {}, entityType: 'package' });
  await put(target, 'packages/other', { publish: true });
  put1('good', { limits: {}, entityType: 'trigger' });
  const result = await carry('--report', join(folder, 'report.json'));
  expect(result.code).toBe(1);
  const { notCarried } = JSON.parse(await readFile(join(folder, 'report.json'), 'utf8')) as {
    notCarried: { type: string; name: string; reason: string }[];
  };
  expect(Object.fromEntries(notCarried.map(({ type, name, reason }) => [`${type} ${name}`, reason]))).toEqual({
    'action alice/elsewhere': "its code is not in CouchDB but in another store ('s3:')",
    'action alice/gone': 'Document is missing attachment',
    'action alice/damaged': 'its code is not what its document says: the digests differ',
    'action alice/cobol':
      "the target has no runtime for kind 'cobol:85' (--kind cobol:85=OTHER carries it as another kind)",
    'action alice/strange': 'it is no entity: its document has no known type',
    'trigger alice/taken': 'its name is taken at the target by a package',
    'package alice/other': 'the target has another one of this name (--overwrite replaces it)',
  });
  await get(target, 'triggers/good');
  const again = await carry('--overwrite', '--kind', 'cobol:85=nodejs:20');
  expect(again.stdout).toMatch(
    /package: +1 replaced\naction: +1 created, 4 not carried\ntrigger: +1 equal already, 1 not/,
  );
  expect((await get(target, 'actions/cobol')).exec).toMatchObject({ kind: 'nodejs:20', code: 'x' });
});

test('identities and activations come along on request', async () => {
  const subjects = `${prefix}subjects`;
  const carol = { subject: 'carol', namespace: 'carol', uuid: 'carol-uuid', key: 'c'.repeat(64) };
  const owned = { name: 'carol', uuid: carol.uuid, key: carol.key };
  couchdb.put(subjects, { _id: 'carol', subject: 'carol', namespaces: [owned] });
  couchdb.put(subjects, { _id: 'carol/limits', invocationsPerMinute: 5 });
  couchdb.put(whisks, {
    ...{ _id: 'carol/hi', namespace: 'carol', name: 'hi', ...entity, limits },
    ...{ entityType: 'action', exec: { kind: 'nodejs:20', code: 'x', binary: false } },
  });
  for (let number = 0; number < 250; number++) {
    const activationId = String(number).padStart(32, '0');
    couchdb.put(`${prefix}activations`, {
      ...{ _id: `carol/${activationId}`, activationId, namespace: 'carol', name: 'hi', subject: 'carol' },
      ...{ version: '0.0.1', publish: false, start: 1000 + number, end: 2000, duration: 1, logs: ['line'] },
      ...{ response: { statusCode: 0, result: { number } }, annotations: [], entityType: 'activation', updated: 1 },
    });
  }
  couchdb.put(`${prefix}activations`, { _id: '_design/whisks.v2.1.0', views: {} });
  expect((await carry()).stdout).toBe('action:     1 created\n');
  const everything = ['--identities', '--activations'];
  expect((await carry('--dry-run', ...everything)).stdout).toMatch(
    /subject: +1 to create\n[^]*activation: +250 to cre/,
  );
  expect(await carry(...everything)).toMatchObject({
    code: 0,
    stdout: 'subject:    1 created\nlimits:     1 created\naction:     1 equal already\nactivation: 250 created\n',
  });
  expect((await get(target, 'actions/hi', carol)).version).toBe('0.0.3');
  expect(await get(target, `activations/${'7'.padStart(32, '0')}`, carol)).toMatchObject({
    logs: ['line'],
    response: { result: { number: 7 }, success: true },
  });
  expect(await get(target, 'activations?count=true', carol)).toEqual({ activations: 250 });
  expect((await carry(...everything)).stdout).toMatch(/activation: +250 equal already\n/);
});

test('only the namespaces that were named', async () => {
  await put(source, 'triggers/hers', {});
  await put(source, 'triggers/his', {}, bob);
  await couchdb.copy(source.store, prefix);
  expect((await carry('--namespace', 'bob')).stdout).toBe('trigger:    1 created\n');
  expect((await stored(target, 'whisks')).map(({ _id: id }) => id)).toEqual(['bob/his']);
});

test('over TLS: a certificate of its own is refused unless it is trusted or all are', async () => {
  const secure = await startFakeCouchdb({ cert: certificate, key: privateKey });
  try {
    await fill(source);
    await secure.copy(source.store, prefix);
    const args = ['--from-couchdb', secure.url, '--db-prefix', prefix, ...to()];
    expect(await migrateIn(folder, args)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/Stopped: localhost:\d+ does not answer: self-signed certificate[;\n]/),
    });
    expect(await stored(target, 'whisks')).toEqual([]);
    await writeFile(join(folder, 'couchdb.pem'), certificate);
    const trusted = await migrateIn(folder, args, { NODE_EXTRA_CA_CERTS: join(folder, 'couchdb.pem') });
    expect(trusted).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^package: +1 created\naction: +3 created\n/),
    });
    expect(await stored(target, 'whisks')).toEqual(await stored(source, 'whisks'));
    const insecure = await migrateIn(folder, [...args, '--insecure']);
    expect(insecure).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^package: +1 equal already\naction: +3 equ/),
    });
  } finally {
    await secure.close();
  }
});

test('a database that is not there, a wrong password and no operator end it', async () => {
  const stopped = { code: 1, stdout: expect.stringMatching(/Stopped: (Database does not|Name or pass|The supplied)/) };
  expect(await carry()).toMatchObject(stopped);
  couchdb.put(whisks, { _id: 'x' });
  const stranger = couchdb.url.replace('whisk:', 'whisk:not-');
  expect(await migrateIn(folder, ['--from-couchdb', stranger, '--db-prefix', prefix, ...to()])).toMatchObject(stopped);
  const guest = ['--to', target.url, '--to-auth', keyOf(alice)];
  expect(await migrateIn(folder, ['--from-couchdb', couchdb.url, '--db-prefix', prefix, ...guest])).toMatchObject(
    stopped,
  );
});
