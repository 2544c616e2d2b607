// Requests of one tenant, and the time and memory of the process that serves all.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import { readFile } from 'node:fs/promises';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasPython } from '../support/machine.js';
import { newSubject } from '../support/operator.js';
import { startMeteredPlatform } from '../support/metered-platform.js';
import type { MeteredPlatform } from '../support/metered-platform.js';
import type { ApiClient } from '../support/api-client.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
/** A step that handles such a request as a whole takes longer. */
const allowedMs = 150;
const grownMiB = 250;

describe('requests of a tenant', () => {
  let platform: RunningPlatform;
  let attacker: ApiClient;
  let metered: MeteredPlatform;
  beforeAll(async () => {
    metered = await startMeteredPlatform();
    ({ platform } = metered);
    attacker = await newSubject(platform, 'attacker', {});
    await attacker.putAction('echo', 'function main(args) { return args; }');
    await attacker.invokeForResult('echo');
  }, caseMs);
  afterAll(() => metered.stop(), caseMs);

  const pauseOf = (work: () => Promise<unknown>): Promise<number> => metered.pauseOf(work);
  const memoryMiB = async (): Promise<number> =>
    Number(/VmRSS:\s+(\d+) kB/.exec(await readFile(`/proc/${platform.pid}/status`, 'utf8'))?.[1]) / 1024;

  (hasPython ? test : test.skip)(
    'whose source takes long to read for its imports hold up none',
    async () => {
      const sources = [
        `from ${'('.repeat(60_000)})\n`,
        `from math import pi${' '.repeat(960)}, e\n`.repeat(60),
        `from math import (\npi)\n`.repeat(2400),
      ];
      for (const source of sources) {
        const code = `${source}def main(args): return {}\n`;
        await attacker.putAction('imports', code, { kind: 'python:default' });
        expect(await pauseOf(() => attacker.invoke('imports'))).toBeLessThan(allowedMs);
      }
    },
    caseMs,
  );

  test(
    'in chunks of a byte are refused before they fill the memory',
    async () => {
      const before = await memoryMiB();
      const { hostname, port } = new URL(platform.url);
      const head = [
        'POST /api/v1/namespaces/_/actions/echo HTTP/1.1',
        'Host: a',
        `Authorization: Basic ${Buffer.from(attacker.auth).toString('base64')}`,
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      ];
      const bytes = Buffer.from('1\r\n \r\n'.repeat(900_000));
      const answer = (): Promise<string> =>
        new Promise((resolve) => {
          const socket = connect(Number(port), hostname);
          let text = '';
          socket.on('data', (data) => (text += data.toString()));
          // The server ends it while it is written to.
          socket.on('error', () => undefined);
          socket.on('close', () => resolve(text));
          socket.write(`${head.join('\r\n')}\r\n\r\n`);
          socket.write(bytes);
        });
      let answers: string[] = [];
      const pauseMs = await pauseOf(async () => (answers = await Promise.all(Array.from({ length: 8 }, answer))));
      expect(pauseMs).toBeLessThan(allowedMs);
      expect((await memoryMiB()) - before).toBeLessThan(grownMiB);
      for (const each of answers) expect(each).toMatch(/^$|^HTTP\/1\.1 400 /);
    },
    caseMs,
  );

  test(
    'that do not wait for answers are handled one after the other, and too many end their connection',
    async () => {
      const answersTo = (count: number): Promise<number> =>
        new Promise((resolve) => {
          const { hostname, port } = new URL(platform.url);
          const socket = connect(Number(port), hostname);
          let answers = 0;
          socket.on('data', (data) => {
            answers += data.toString('latin1').split('HTTP/1.1 401 ').length - 1;
            if (answers === count) socket.end();
          });
          // The server ends it while it is written to.
          socket.on('error', () => undefined);
          socket.on('close', () => resolve(answers));
          socket.write('GET /api/v1/namespaces/_/actions/echo HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(count));
        });
      expect(await pauseOf(async () => expect(await answersTo(200)).toBe(200))).toBeLessThan(allowedMs);
      const many = async (): Promise<void> => {
        for (const answers of await Promise.all([20_000, 20_000, 20_000].map(answersTo))) {
          expect(answers).toBeLessThan(300);
        }
      };
      expect(await pauseOf(many)).toBeLessThan(allowedMs);
    },
    caseMs,
  );

  test(
    'for a package of actions with large annotations, and for its deletion, hold up none',
    async () => {
      await attacker.request('PUT', '_/packages/large', {});
      const annotations = [{ key: 'large', value: 'x'.repeat(900_000) }];
      const body = { exec: { kind: 'nodejs:default', code: 'function main() {}' }, annotations };
      for (let at = 0; at < 40; at++) {
        const { status } = await attacker.request('PUT', `_/actions/large/a${at}`, body);
        expect(status).toBe(200);
      }
      let shown: JsonObject = {};
      const gets = await pauseOf(async () => ({ body: shown } = await attacker.request('GET', '_/packages/large')));
      expect((shown.actions as JsonObject[]).length).toBe(40);
      expect(shown.feeds).toEqual([]);
      const deletes = await pauseOf(async () =>
        expect((await attacker.request('DELETE', '_/packages/large')).status).toBe(409),
      );
      expect(Object.entries({ gets, deletes }).filter(([, pauseMs]) => pauseMs > allowedMs)).toEqual([]);
    },
    caseMs,
  );

  test(
    'that store APIs as large as they may be hold up none when the APIs are called',
    async () => {
      const api = (basePath: string): object => ({
        swagger: '2.0',
        basePath,
        info: { title: 'large', version: '1' },
        paths: Object.fromEntries(Array.from({ length: 900 }, (_, at) => [`/p${at}`, { get: {} }])),
        description: 'x'.repeat(850_000),
      });
      const path = '../web/whisk.system/apimgmt/createApi?accesstoken=x&spaceguid=x';
      const statuses: number[] = [];
      for (let at = 0; at < 30 && (statuses.at(-1) ?? 200) === 200; at++) {
        const apidoc = { namespace: '_', swagger: api(`/a${at}`) };
        statuses.push((await attacker.request('POST', path, { apidoc })).status);
      }
      expect(statuses).toEqual([200, 200, 502]);
      const [tenant] = attacker.auth.split(':');
      const [, gateway = ''] = /APIs that it serves are at (\S+)\/api/.exec(platform.output()) ?? [];
      const visit = async (): Promise<void> => {
        expect((await fetch(`${gateway}/api/${tenant}/none`)).status).toBe(404);
      };
      expect(await pauseOf(visit)).toBeLessThan(allowedMs);
    },
    caseMs,
  );
});
