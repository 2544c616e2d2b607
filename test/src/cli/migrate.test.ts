import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '@gpuwhisk/common/json';
import { alice, bob, hello, startApi } from '../api/harness.js';
import type { Account, Api, Reply } from '../api/harness.js';
import {
  documents,
  encryptParameter,
  fill,
  get,
  keyOf,
  large,
  migrateIn,
  put,
  startFlakyProxy,
} from './migrate-harness.js';
import type { WskResult } from './wsk-process.js';

let folder: string;
let source: Api;
let target: Api;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'migrate-test-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
beforeEach(async () => {
  [source, target] = [await startApi(), await startApi()];
});
afterEach(async () => {
  await source.close();
  await target.close();
});

const migrate = (...args: string[]): Promise<WskResult> => migrateIn(folder, args);
const between = ['--auth', keyOf(alice), '--to-auth', keyOf(alice)];
const carry = (...args: string[]): Promise<WskResult> =>
  migrate('--from', source.url, '--to', target.url, ...between, ...args);

describe('over the API', () => {
  test('everything comes over as it is, and a second run finds it equal', async () => {
    await fill(source);
    const first = await carry('--report', join(folder, 'report.json'));
    expect(first).toMatchObject({ code: 0, stderr: '' });
    expect(first.stdout).toBe(
      'package:    1 created\naction:     3 created\nbinding:    1 created\nsequence:   3 created\n' +
        'trigger:    2 created\nrule:       2 created\n\nNote:\n' +
        '  trigger alice/tick: its feed /alice/tools/packed has to be asked for events anew\n',
    );
    expect(await documents(target)).toEqual(await documents(source));
    const plain = await get(target, 'actions/plain');
    expect((plain.exec as JsonObject).code).toBe(large);
    expect((await get(target, 'rules/off')).status).toBe('inactive');
    const report = JSON.parse(await readFile(join(folder, 'report.json'), 'utf8')) as JsonObject;
    expect(report).toMatchObject({ dryRun: false, complete: true, notCarried: [] });
    expect(report.counts).toMatchObject({ action: { created: 3, replaced: 0, equal: 0, failed: 0 } });

    const stored = await target.store.list('whisks', { limit: 1000 });
    const second = await carry();
    expect(second.code).toBe(0);
    expect(second.stdout).toMatch(/^package: +1 equal already\naction: +3 equal already\n/);
    expect(second.stdout).toMatch(/sequence: +3 equal already\ntrigger: +2 equal already\nrule: +2 equal already\n/);
    expect(await target.store.list('whisks', { limit: 1000 })).toEqual(stored);
  });

  test('encrypted parameters stay behind, which is told, and what is given again stays', async () => {
    await fill(source);
    await encryptParameter(source);
    const told =
      "Not carried:\n  action alice/plain: its encrypted parameters 'secret' are to be given again, or migrated from " +
      'CouchDB, which carries them\n';
    const first = await carry();
    expect(first).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^package: +1 created\naction: +3 created\n/),
    });
    expect(first.stdout).toContain(told);
    const mode = { key: 'mode', value: { deep: [1, null] }, init: true };
    expect((await get(target, 'actions/plain')).parameters).toEqual([mode]);
    const parameters = [mode, { key: 'secret', value: 'mine' }];
    const path = '/api/v1/namespaces/_/actions/plain?overwrite=true';
    await target.request('PUT', path, { body: { parameters, version: '2.0.7' } });
    const second = await carry();
    expect(second).toMatchObject({ code: 1, stdout: expect.stringMatching(/\naction: +3 equal already\n/) });
    expect(second.stdout).toContain(told);
    expect((await get(target, 'actions/plain')).parameters).toEqual(parameters);
  });

  test('a dry run says the same and changes nothing', async () => {
    await fill(source);
    const result = await carry('--dry-run');
    expect(result.code).toBe(0);
    expect(result.stdout).toMatch(/^package: +1 to create\naction: +3 to create\n/);
    expect(await target.store.list('whisks', { limit: 1 })).toEqual([]);
  });

  test('an interrupted migration goes on: what is missing is made, a rule that is active still is switched off', async () => {
    await fill(source);
    await carry();
    for (const path of ['rules/on', 'actions/outer', 'triggers/name%20with%20blanks']) {
      await target.request('DELETE', `/api/v1/namespaces/_/${path}`);
    }
    await target.request('POST', '/api/v1/namespaces/_/rules/off', { body: { status: 'active' } });
    const result = await carry();
    expect(result.code).toBe(0);
    expect(result.stdout).toMatch(/sequence: +1 created, 2 equal already\ntrigger: +1 created, 1 equal already\n/);
    expect(result.stdout).toMatch(/rule: +1 created, 1 replaced\n/);
    expect(await documents(target)).toEqual(await documents(source));
  });

  test('what cannot be carried is told, and the rest is', async () => {
    await put(source, 'actions/good', hello);
    await put(source, 'actions/old', hello);
    const old = await source.store.get('whisks', 'alice/old');
    await source.store.put('whisks', { ...old, exec: { ...(old.exec as JsonObject), kind: 'nodejs:6' } });
    await put(source, 'actions/unknown', hello);
    const unknown = await source.store.get('whisks', 'alice/unknown');
    await source.store.put('whisks', { ...unknown, exec: { ...(unknown.exec as JsonObject), kind: 'cobol:85' } });
    await put(source, 'actions/taken', hello);
    await put(target, 'triggers/taken', {});
    await put(source, 'actions/other', hello);
    await put(target, 'actions/other', { exec: { kind: 'nodejs:20', code: 'other' } });
    await put(source, 'triggers/t', {});
    await put(source, 'rules/dangling', { trigger: '/_/t', action: '/_/good' });
    await put(source, 'actions/seq', { exec: { kind: 'sequence', components: ['/_/good', '/_/unknown'] } });
    const dangling = await source.store.get('whisks', 'alice/dangling');
    await source.store.put('whisks', { ...dangling, action: { path: 'alice', name: 'gone' } });

    const result = await carry('--report', join(folder, 'report.json'));
    expect(result.code).toBe(1);
    const { notCarried, complete } = JSON.parse(await readFile(join(folder, 'report.json'), 'utf8')) as {
      notCarried: { type: string; name: string; reason: string }[];
      complete: boolean;
    };
    expect(complete).toBe(false);
    const reasons = new Map(notCarried.map(({ type, name, reason }) => [`${type} ${name}`, reason]));
    expect(Object.fromEntries(reasons)).toEqual({
      'action alice/old':
        "the target no longer accepts kind 'nodejs:6' (--kind nodejs:6=OTHER carries it as another kind)",
      'action alice/unknown':
        "the target has no runtime for kind 'cobol:85' (--kind cobol:85=OTHER carries it as another kind)",
      'action alice/taken': 'its name is taken at the target by a trigger',
      'action alice/other': 'the target has another one of this name (--overwrite replaces it)',
      'sequence alice/seq': expect.any(String),
      'rule alice/dangling': 'action /alice/gone does not exist',
    });
    for (const [name, reason] of reasons) expect(result.stdout).toContain(`  ${name}: ${reason}\n`);
    await get(target, 'actions/good');

    const again = await carry('--overwrite', '--kind', 'cobol:85=nodejs:20', '--kind', 'nodejs:6=nodejs:20');
    expect(again.code).toBe(1);
    expect(again.stdout).toMatch(
      /action: +2 created, 1 replaced, 1 equal already, 1 not carried\nsequence: +1 created/,
    );
    expect((await get(target, 'actions/other')).exec).toMatchObject({ code: hello.exec.code });
  });

  test('code that is too large for the target is told', async () => {
    await target.close();
    target = await startApi({ limits: { maxCodeBytes: 1000 } });
    await put(source, 'actions/big', { exec: { kind: 'nodejs:20', code: large } });
    await put(source, 'actions/good', hello);
    const result = await carry();
    expect(result.code).toBe(1);
    expect(result.stdout).toMatch(/action: +1 created, 1 not carried\n/);
    expect(result.stdout).toMatch(/ {2}action alice\/big: .*larger/);
  });

  test('several namespaces go to namespaces of other names, and refer to each other there', async () => {
    await put(source, 'packages/shared', { publish: true, parameters: [{ key: 'a', value: 1 }] });
    await put(source, 'actions/shared/hello', hello);
    const others = { binding: { namespace: 'alice', name: 'shared' }, parameters: [{ key: 'b', value: 2 }] };
    await put(source, 'packages/mine', others, bob);
    await put(source, 'actions/both', { exec: { kind: 'sequence', components: ['/alice/shared/hello'] } }, bob);
    const keys = ['--auth', keyOf(alice), '--to-auth', keyOf(bob), '--auth', keyOf(bob), '--to-auth', keyOf(alice)];
    const result = await migrate('--from', source.url, '--to', target.url, ...keys);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect((await get(target, 'packages/mine')).binding).toEqual({ namespace: 'bob', name: 'shared' });
    expect((await get(target, 'actions/both')).exec).toMatchObject({ components: ['/bob/shared/hello'] });
    expect(await target.store.get('whisks', 'alice/mine')).toMatchObject({ parameters: [{ key: 'b', value: 2 }] });
    const again = await migrate('--from', source.url, '--to', target.url, ...keys);
    expect(again.stdout).not.toContain('created');
  });

  test('API routes come along, and lead to where their actions are now', async () => {
    await source.close();
    await target.close();
    [source, target] = [await startApi({ gatewayUrl: 'http://a' }), await startApi({ gatewayUrl: 'http://b' })];
    const manage = (api: Api, operation: string, as: Account, body?: object): Promise<Reply> => {
      const path = `/api/v1/web/whisk.system/apimgmt/${operation}.http?accesstoken=x&spaceguid=${as.uuid}`;
      return api.request(body === undefined ? 'GET' : 'POST', path, { as, ...(body !== undefined && { body }) });
    };
    const action = {
      ...{ name: 'hello', namespace: 'alice', backendMethod: 'POST', authkey: keyOf(alice) },
      backendUrl: 'https://old.example.org/api/v1/web/alice/default/hello.json',
    };
    const apidoc = { namespace: '_', gatewayBasePath: '/shop', gatewayPath: '/cart', gatewayMethod: 'GET', action };
    expect((await manage(source, 'createApi', alice, { apidoc })).status).toBe(200);

    const keys = ['--auth', keyOf(alice), '--to-auth', keyOf(bob)];
    const result = await migrate('--from', source.url, '--to', target.url, ...keys);
    expect(result).toEqual({ code: 0, stdout: 'api:        1 created\n', stderr: '' });
    const { apis } = (await manage(target, 'getApi', bob)).json as { apis: { value: { apidoc: JsonObject } }[] };
    expect(apis[0]?.value.apidoc.paths).toMatchObject({
      '/cart': {
        get: { 'x-openwhisk': { namespace: 'bob', url: `${target.url}/api/v1/web/bob/default/hello.json` } },
      },
    });
    expect(JSON.stringify(apis)).not.toContain('old.example.org');
    const again = await migrate('--from', source.url, '--to', target.url, ...keys);
    expect(again.stdout).toBe('api:        1 equal already\n');
  });

  test('connections that break, answers that are lost and 503 are got over', async () => {
    await fill(source);
    const flaky = await startFlakyProxy(target.port);
    try {
      const result = await migrate('--from', source.url, '--to', flaky.url, ...between);
      expect(result).toMatchObject({ code: 0, stderr: '' });
      expect(flaky.troubles()).toBeGreaterThan(5);
      expect(await documents(target)).toEqual(await documents(source));
    } finally {
      await flaky.close();
    }
  });

  test('a wrong key and a server that is not there end it', async () => {
    const stranger = await migrate(
      '--from',
      source.url,
      '--to',
      target.url,
      '--auth',
      'a:b',
      '--to-auth',
      keyOf(alice),
    );
    expect(stranger).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('Stopped: The supplied authentication'),
    });
    const nobody = await migrate('--from', 'http://127.0.0.1:1', '--to', target.url, ...between);
    const nothing = /^Nothing was carried\.\n\nStopped: .*127\.0\.0\.1:1 does not answer/;
    expect(nobody).toMatchObject({ code: 1, stdout: expect.stringMatching(nothing) });
  });
});

test('mistakes in the command line are explained', async () => {
  const error = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await migrate(...args);
    expect([code, stdout]).toEqual([1, '']);
    return stderr.split('\n')[0] ?? '';
  };
  const to = ['--to', 'http://x', '--to-auth', 'u:k'];
  expect(await error()).toContain('--to is missing');
  expect(await error(...to)).toContain('--from or --from-couchdb is missing');
  expect(await error(...to, '--from', 'http://y')).toContain('--auth is missing');
  expect(await error(...to, '--from', 'http://y', '--auth', 'nocolon')).toContain('with a colon');
  expect(await error(...to, '--from', 'http://y', '--auth', 'u:k', '--auth', 'v:k')).toContain('2 keys of the source');
  expect(await error(...to, '--from', 'http://y', '--auth', 'u:k', '--identities')).toContain(
    '--identities does not go',
  );
  expect(await error(...to, '--from-couchdb', 'ftp://y', '--db-prefix', 'p')).toContain('http or https');
  expect(await error(...to, '--from-couchdb', 'http://y')).toContain('--db-prefix is missing');
  expect(await error(...to, '--from', 'http://y', '--auth', 'u:k', '--kind', 'a')).toContain('FROM=TO');
  expect(await error(...to, '--from', 'http://y', '--auth', 'u:k', '--concurrency', '0')).toContain('1 to 256');
  expect(await error('--what')).toContain('--what');
  expect((await migrate('--help')).stdout).toContain('usage: gpuwhisk migrate');
});
