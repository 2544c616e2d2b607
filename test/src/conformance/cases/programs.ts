import { expect } from '@jest/globals';
import AdmZip from 'adm-zip';
import { logTexts } from '../../support/api-client.js';
import { table } from '../conformance-case.js';
import type { Row } from '../conformance-case.js';
import { countWords, echo, greet, sleep } from '../functions.js';
import { refused, valueOf } from '../trial.js';
import { pairs } from './json-arguments.js';

const nested = `const openwhisk = require('openwhisk');
async function main({ payload, action }) {
  const { response } = await openwhisk().actions.invoke({ name: action, params: { payload }, blocking: true });
  return { binaryCount: response.result.count.toString(2) + ' (base 2)' };
}`;

const removesItself = `const openwhisk = require('openwhisk');
async function main({ name }) {
  const { actions } = openwhisk();
  console.log('action list has this many actions:', (await actions.list({ limit: 200 })).length);
  return { delete: (await actions.delete({ name })).name === name };
}`;

const untilDeadline = `function main({ forceHang }) {
  const leftMs = Number(process.env.__OW_DEADLINE) - Date.now();
  return new Promise((done) => setTimeout(() => forceHang || done({ timedout: true }), leftMs - 3500));
}`;

const rows: Row[] = [
  {
    fact: 'a function may invoke another, and wait',
    stands: 'WskActionTests: blocking invoke of nested blocking actions',
    needs: 'network',
    run: async (t) => {
      const action = await t.action(countWords);
      const name = await t.action(nested, { annotations: { 'provide-api-key': true } });
      const { body } = await t.invoke(name, { payload: 'this is a test', action });
      expect(body.response.result).toEqual({ binaryCount: '100 (base 2)' });
    },
  },
  {
    fact: 'a function may list actions and delete itself',
    stands: 'WskRestBasicUsageTests: invoke an action using npm openwhisk',
    needs: 'network',
    run: async (t) => {
      const name = t.name('deleting');
      await t.action(removesItself, { annotations: { 'provide-api-key': true } }, name);
      const record = await t.run(name, { name });
      expect(record.response).toMatchObject({ status: 'success', result: { delete: true } });
      expect(logTexts(record).join()).toContain('action list has this many actions');
      expect((await t.delete(`actions/${name}`)).status).toBe(404);
    },
  },
  {
    fact: 'ping is not for functions',
    stands: "WskActionTests: not be able to use 'ping' in an action",
    run: async (t) => {
      const code = `function main() {
        const { spawnSync } = require('child_process');
        const { status, stdout } = spawnSync('ping', ['-c', '1', '-W', '1', '127.0.0.1']);
        return { code: status ?? -1, stdout: String(stdout) };
      }`;
      const { result } = (await t.run(await t.action(code))).response;
      expect(result.code).not.toBe(0);
      expect(result.stdout).not.toContain('bytes from');
    },
    needs: 'isolation',
  },
  {
    fact: 'code may be as large as 47 MiB',
    stands: 'WskActionTests: invoke action with large code',
    run: async (t) => {
      const record = await t.run(await t.action(greet + ' '.repeat(47 * 1024 * 1024)), { payload: 'hello' });
      expect([record.response.status, logTexts(record)]).toEqual(['success', ['hello, hello!']]);
    },
  },
  {
    fact: 'a program as openwhisk/dockerskeleton runs them',
    stands: 'WskRestBasicTests: create, and invoke an action that utilizes dockerskeleton with native zip',
    source: 'docs/actions-docker.md',
    run: async (t) => {
      const zip = new AdmZip();
      const program = '#!/bin/sh\necho \'This is an example zip.\'\necho \'{"msg":"hello zip"}\'\n';
      zip.addFile('exec', Buffer.from(program), '', 0o755);
      const name = t.name('native');
      const image = 'openwhisk/dockerskeleton';
      await t.replace(`actions/${name}`, {
        exec: { kind: 'blackbox', image, code: zip.toBuffer().toString('base64') },
      });
      const record = await t.run(name);
      expect([record.response.result, logTexts(record)]).toEqual([{ msg: 'hello zip' }, ['This is an example zip.']]);
    },
  },
  {
    fact: 'a caller that waits no longer is answered 202',
    stands: 'WskRestBasicTests: create, and invoke an action that times out to ensure the proper response is received',
    run: async (t) => {
      const { status, body } = await t.invoke(
        await t.action(sleep),
        { sleepMs: 500 },
        'blocking=true&result=true&timeout=100',
      );
      expect([status, Object.keys(body)]).toEqual([202, ['activationId']]);
      expect((await t.record(body.activationId)).response.success).toBe(true);
    },
  },
  {
    fact: 'a function knows its deadline',
    stands: 'WskRestBasicUsageTests: invoke an action that returns a result by the deadline',
    run: async (t) => {
      const { response } = await t.run(await t.action(untilDeadline, { limits: { timeout: 4000 } }));
      expect([response.status, response.result]).toEqual(['success', { timedout: true }]);
    },
  },
  {
    fact: 'after a run over its time, the next has a fresh container',
    stands:
      'WskRestBasicUsageTests: invoke an action twice, where the first times out but the second does not and should succeed',
    run: async (t) => {
      const name = await t.action(untilDeadline, { limits: { timeout: 4000 } });
      const hung = await t.run(name, { forceHang: true });
      expect(hung.response.result).toEqual({ error: 'The action exceeded its time limits of 4000 milliseconds.' });
      const { response, annotations } = await t.run(name, { forceHang: false });
      expect([response.status, response.result]).toEqual(['success', { timedout: true }]);
      expect(valueOf(annotations, 'initTime')).toEqual(expect.any(Number));
    },
  },
  {
    fact: 'a feed that there is not: its invocation is 404, and the client leaves no trigger',
    stands: 'WskRestBasicUsageTests: not create a trigger when feed fails to initialize',
    source: 'docs/feeds.md',
    run: async (t) => {
      for (const feed of ['bogus', 'bogus/feed']) {
        const trigger = t.name('trigger');
        await t.replace(`triggers/${trigger}`, { annotations: pairs({ feed: `/${t.namespace}/${feed}` }) });
        const given = { lifecycleEvent: 'CREATE', triggerName: `/_/${trigger}`, authKey: t.user.auth };
        refused(await t.invoke(feed, given), 404, 'The requested resource does not exist.');
        await t.delete(`triggers/${trigger}`);
        expect((await t.get(`triggers/${trigger}`)).status).toBe(404);
      }
    },
  },
  {
    fact: 'a feed is told of every event in the life of its trigger',
    stands:
      'WskRestBasicUsageTests: invoke a feed action with the correct lifecyle event when creating, retrieving and deleting a feed trigger',
    source: 'docs/feeds.md',
    run: async (t) => {
      const [feed, trigger] = [await t.action(echo), t.name('trigger')];
      await t.replace(`triggers/${trigger}`, { annotations: pairs({ feed: `/${t.namespace}/${feed}` }) });
      expect(valueOf((await t.get(`triggers/${trigger}`)).body.annotations, 'feed')).toBe(`/${t.namespace}/${feed}`);
      for (const lifecycleEvent of ['CREATE', 'READ', 'DELETE']) {
        const given = { lifecycleEvent, triggerName: `/_/${trigger}`, authKey: t.user.auth };
        const { status, body } = await t.invoke(feed, given);
        expect([status, body.response.result]).toEqual([200, given]);
      }
      expect((await t.delete(`triggers/${trigger}`)).status).toBe(200);
    },
  },
];

/** Sheets 3, 6 and 8: permissions and environment of functions. */
export const programCases = table('programs', 'core/invoker/.../core/containerpool/ContainerProxy.scala', rows);
