import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { runWsk } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import { annotation, logTexts } from '../support/api-client.js';
import type { ApiActivation } from '../support/api-client.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import type { DockerEngine } from './docker-engine.js';

const testTimeoutMs = 120_000;
const withinMs = 60_000;
/** Time limit of calls, enough for a busy machine's engine; a hung engine is waited for as long, ms. */
const callTimeoutMs = 6000;

const image = (name: string): JsonObject => ({ prefix: 'gpuwhisk', name, tag: '1' });
const manifest = {
  runtimes: {
    test: [
      {
        ...{ kind: 'test:1', default: true, deprecated: false, requireMain: false, sentinelledLogs: false },
        image: image('test-framed'),
        attached: { attachmentName: 'codefile', attachmentType: 'text/plain' },
        stemCells: [],
      },
    ],
  },
  blackboxes: ['http', 'ends', 'nothing'].map((name) => image(`test-${name}`)),
};

/** A platform with containers of the engine, used over its API. */
export function platformCases(engine: () => DockerEngine): void {
  describe('a platform with --containers docker', () => {
    let folder: string;
    let platform: RunningPlatform;
    const wsk = (...args: string[]): Promise<WskResult> =>
      runWsk([...args, '--apihost', platform.url, '--auth', platform.auth], { directory: folder });
    const create = async (name: string, ...flags: string[]): Promise<void> => {
      const created = await wsk('action', 'create', name, ...flags);
      expect(created).toMatchObject({ code: 0, stdout: `ok: created action ${name}\n` });
    };
    const createForeign = (name: string, sort: string, ...flags: string[]): Promise<void> =>
      create(name, '--docker', `gpuwhisk/test-${sort}:1`, ...flags);
    const invoke = async (name: string, parameters: JsonObject = {}): Promise<ApiActivation> =>
      (await platform.api.run(name, parameters)).record;
    const printed = async (text: string): Promise<boolean> => {
      const ids = (await engine().docker(['ps', '-q'])).split('\n').filter((id) => id !== '');
      // A container may have ended since: other actions' idle ones are removed.
      const logsOf = (id: string): Promise<string> =>
        engine()
          .docker(['logs', id])
          .catch((error: Error) => {
            if (/no such container/i.test(error.message)) return '';
            throw error;
          });
      const all = await Promise.all(ids.map(logsOf));
      return all.some((one) => one.includes(text));
    };

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-docker-platform-'));
      const file = join(folder, 'runtimes.json');
      writeFileSync(file, JSON.stringify(manifest));
      const settings = [`docker.socket=${engine().socketPath}`, `docker.callTimeoutMs=${callTimeoutMs}`];
      platform = await startPlatform({
        flags: ['--containers', 'docker', '--runtimes', file, ...settings.flatMap((setting) => ['--set', setting])],
      });
    }, testTimeoutMs);
    afterAll(async () => {
      await platform.stop();
      rmSync(folder, { recursive: true, force: true });
    }, testTimeoutMs);

    test(
      'runs a foreign image, with its result, logs, errors and time-outs',
      async () => {
        await createForeign('foreign', 'http', '--timeout', '8000');
        const invoked = await wsk('action', 'invoke', 'foreign', '-r', '-p', 'name', 'x');
        expect(invoked.code).toBe(0);
        expect(JSON.parse(invoked.stdout)).toEqual({ name: 'x' });
        const logged = await invoke('foreign', { do: 'log' });
        expect(logged.response).toMatchObject({ status: 'success', result: { ok: true } });
        expect(logTexts(logged).sort()).toEqual(['err', 'out']);
        expect((await invoke('foreign', { do: 'error', error: 'bad' })).response).toMatchObject({
          success: false,
          result: { error: 'bad' },
        });
        const late = await invoke('foreign', { do: 'hang' });
        expect(late.response.result.error).toMatch(/exceeded its time limits of 8000 milliseconds/);
        expect(annotation(late, 'timeout')).toBe(true);
        const lost = await invoke('foreign', { do: 'exit' });
        expect(lost.response.result.error).toMatch(/did not produce a valid response and exited unexpectedly/);
        expect((await invoke('foreign', { a: 1 })).response.result).toEqual({ a: 1 });
      },
      testTimeoutMs,
    );

    test(
      'says what is wrong with an image that is no runtime, or that there is none',
      async () => {
        await createForeign('ends', 'ends');
        const ends = (await invoke('ends')).response;
        expect(ends.result.error).toMatch(/did not initialize (and exited unexpectedly|or run as expected)/);
        await createForeign('nothing', 'nothing');
        const nothing = (await invoke('nothing')).response;
        expect(nothing).toMatchObject({
          status: 'whisk internal error',
          result: { error: 'Failed to provision resources to run the action.' },
        });
        await create('none', '--docker', '127.0.0.1:9/none:1');
        const none = (await invoke('none')).response;
        expect(none).toMatchObject({
          success: false,
          result: { error: "Failed to pull container image '127.0.0.1:9/none:1'." },
        });
      },
      testTimeoutMs,
    );

    test(
      'refuses new containers while the engine hangs, finishes what runs, and goes on when it answers',
      async () => {
        await createForeign('sleeper', 'http', '--timeout', '60000');
        await createForeign('other', 'http');
        const slept = invoke('sleeper', { do: 'sleep', ms: 8000 });
        await until('its run', () => printed('sleeping'), withinMs);
        engine().process.kill('SIGSTOP');
        try {
          const refused = await invoke('other');
          expect(refused.response).toMatchObject({
            status: 'whisk internal error',
            result: { error: 'Failed to provision resources to run the action.' },
          });
          expect((await slept).response.result).toEqual({ slept: true });
          expect(platform.output()).toContain('The Docker engine is unhealthy.');
        } finally {
          engine().process.kill('SIGCONT');
        }
        await until('the engine healthy', () => platform.output().includes('is healthy'), withinMs);
        expect((await invoke('other', { a: 2 })).response.result).toEqual({ a: 2 });
      },
      testTimeoutMs,
    );
  });
}
