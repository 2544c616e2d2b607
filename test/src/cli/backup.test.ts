// gpuwhisk backup and restore between databases of a server of CouchDB's protocol.
import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { hasCouchdb, startCouchdb } from '../contract/couchdb-server.js';
import type { CouchdbServer } from '../contract/couchdb-server.js';
import { runBinary, withFolder } from './wsk-process.js';

const binary = fileURLToPath(new URL('../../../bin/gpuwhisk', import.meta.url));
const prefixes = ['from_', 'to_', 'many', 'used_', 'whole_', 'never_', 'nothing_', 'x_'];
const code = Buffer.from('function main() { return { text: "\u00e4" }; }').toString('base64');
const action = {
  entityType: 'action',
  exec: { kind: 'nodejs:20', code: { attachmentName: 'couch:6f1c' } },
  _attachments: { '6f1c': { content_type: 'text/plain', data: code } },
};

(hasCouchdb ? describe : describe.skip)('gpuwhisk backup and restore', () => {
  let couchdb: CouchdbServer;
  beforeAll(async () => {
    couchdb = await startCouchdb({ prefixes });
  });
  afterAll(() => couchdb.stop());

  const request: CouchdbServer['request'] = (...parts) => couchdb.request(...parts);
  /** Creates databases with one subject, `actions` actions and one record. */
  const fill = async (prefix: string, actions = 1): Promise<void> => {
    for (const name of ['subjects', 'whisks', 'activations']) await request('PUT', `${prefix}${name}`);
    await request('PUT', `${prefix}subjects/alice`, { subject: 'alice', namespaces: [] });
    await request('PUT', `${prefix}whisks/_design%2Fwhisks`, { language: 'javascript', views: {} });
    for (let at = 0; at < actions; at += 1) await request('PUT', `${prefix}whisks/alice%2Fgreet${at}`, action);
    await request('PUT', `${prefix}activations/alice%2F1`, { activationId: '1' });
  };
  const run = (directory: string, command: string, prefix: string, ...more: string[]) =>
    runBinary(binary, [command, 'file', '--db-prefix', prefix, ...more], {
      directory,
      environment: { COUCHDB_URL: couchdb.url },
    });
  const idsIn = async (database: string): Promise<unknown[]> => {
    const { rows } = (await request('GET', `${database}/_all_docs`)) as { rows?: { id: string }[] };
    return (rows ?? []).map(({ id }) => id);
  };

  test('carry documents with their code, but records only on demand, in a file for its owner', () =>
    withFolder(async (folder) => {
      await fill('from_');
      expect(await run(folder, 'backup', 'from_')).toEqual({
        code: 0,
        stdout: 'file: 3 documents\n',
        stderr: 'There is no database from_gpu.\n',
      });
      expect(statSync(join(folder, 'file')).mode & 0o777).toBe(0o600);
      expect(await run(folder, 'restore', 'to_')).toEqual({ code: 0, stdout: '3 documents restored\n', stderr: '' });
      const copied = await request('GET', 'to_whisks/alice%2Fgreet0?attachments=true');
      expect(copied).toMatchObject({ ...action, _attachments: { '6f1c': { data: code, content_type: 'text/plain' } } });
      expect(await idsIn('to_whisks')).toEqual(['_design/whisks', 'alice/greet0']);
      expect(await idsIn('to_subjects')).toEqual(['alice']);
      expect(await idsIn('to_activations')).toEqual([]);
      expect(await run(folder, 'backup', 'from_', '--activations')).toMatchObject({ stdout: 'file: 4 documents\n' });
      // A backup contains learned data, but not the documents that assign numbers to data folders.
      await request('PUT', 'from_gpu');
      await request('PUT', 'from_gpu/learned', {});
      await request('PUT', 'from_gpu/process%2Finvokers%2F00000', { number: 0, name: 'a', holder: 'folder' });
      expect(await run(folder, 'backup', 'from_')).toMatchObject({ stdout: 'file: 4 documents\n', stderr: '' });
    }));

  test('carry more documents than one request takes', () =>
    withFolder(async (folder) => {
      await fill('many_', 450);
      expect(await run(folder, 'backup', 'many_')).toMatchObject({ stdout: 'file: 452 documents\n' });
      expect(await run(folder, 'restore', 'many2_')).toMatchObject({ code: 0, stdout: '452 documents restored\n' });
      expect(await idsIn('many2_whisks')).toHaveLength(451);
    }));

  test('databases with documents are left alone, unless they may be overwritten', () =>
    withFolder(async (folder) => {
      await fill('used_');
      await run(folder, 'backup', 'used_');
      const changed = await request('GET', 'used_subjects/alice');
      await request('PUT', 'used_subjects/alice', { ...changed, blocked: true });
      await request('PUT', 'used_subjects/bob', { subject: 'bob' });
      const refused = await run(folder, 'restore', 'used_');
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toBe(
        'error: used_subjects, used_whisks: not empty. --overwrite replaces documents that are in the backup.\n',
      );
      expect(await request('GET', 'used_subjects/alice')).toHaveProperty('blocked', true);
      expect(await run(folder, 'restore', 'used_', '--overwrite')).toMatchObject({ code: 0 });
      expect(await request('GET', 'used_subjects/alice')).not.toHaveProperty('blocked');
      expect(await idsIn('used_subjects')).toEqual(['alice', 'bob']);
    }));

  test('a file that is cut off, or is no backup, is refused before anything is written', () =>
    withFolder(async (folder) => {
      await fill('whole_');
      await run(folder, 'backup', 'whole_');
      const file = join(folder, 'file');
      const text = gunzipSync(readFileSync(file)).toString('utf8');
      const lines = text.trimEnd().split('\n');
      const damaged: [Buffer | string, RegExp][] = [
        [gzipSync(lines.slice(0, -1).join('\n')), /cut off after 3 documents/],
        [gzipSync(lines.toSpliced(1, 1).join('\n')), /cut off after 2 documents/],
        [gzipSync(text.replace('"version":1', '"version":7')), /of version 7; this is for version 1/],
        [gzipSync('{}\n'), /is no backup of gpuwhisk/],
        ['not even compressed', /Unable to read 'file': incorrect header check/],
      ];
      for (const [content, reason] of damaged) {
        writeFileSync(file, content);
        const result = await run(folder, 'restore', 'never_');
        expect(result).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(reason) as unknown });
      }
      truncateSync(file, 0);
      expect(await run(folder, 'restore', 'never_')).toMatchObject({ code: 1 });
      expect(await idsIn('never_whisks')).toEqual([]);
    }));

  test('what cannot be is said in a line', () =>
    withFolder(async (folder) => {
      expect(await run(folder, 'backup', 'nothing_')).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/There is nothing of prefix 'nothing_'/) as unknown,
      });
      expect(await run(folder, 'restore', 'x_')).toMatchObject({
        code: 1,
        stderr: "error: Unable to read 'file': open file: no such file or directory\n",
      });
      const none = await runBinary(binary, ['backup', '--db-prefix', 'x_'], { directory: folder });
      expect(none.stderr).toBe("error: one FILE is needed\nRun 'gpuwhisk backup --help' for usage.\n");
      const away = ['backup', 'file', '--db-prefix', 'x_', '--couchdb', 'http://127.0.0.1:9/'];
      const unreachable = await runBinary(binary, away, { directory: folder });
      expect(unreachable).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/127\.0\.0\.1:9 does not answer/) as unknown,
      });
    }));
});
