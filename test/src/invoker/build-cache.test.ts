import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { until } from '@gpuwhisk/common/testing/until';
import type {
  Call,
  CallLimits,
  Container,
  InitRequest,
  CallOutcome,
} from '@gpuwhisk/invoker/containers/container-factory';
import { BackgroundBuilds } from '@gpuwhisk/invoker/containers/background-builds';
import { BuildCache } from '@gpuwhisk/invoker/containers/build-cache';
import type { BackgroundBuild, Build } from '@gpuwhisk/invoker/containers/runtime-launch';

const limits: CallLimits = { timeoutMs: 1000, maxResultBytes: 1 << 20, logLimitBytes: 0, truncationBytes: 1024 };
const program = Buffer.from('\x7fELF, or so');
const source: InitRequest = { name: 'a', main: 'main', code: 'int main;', binary: false, env: {}, digest: 'of source' };

const ended = (outcome: CallOutcome): Call => ({ outcome: Promise.resolve(outcome), logs: Promise.resolve([]) });

describe('programs that are built from code', () => {
  let folder: string;
  let builds: number;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-builds-'));
    builds = 0;
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** The init request that a new cache gives the runtime, as after a restart. */
  async function load(forNamespace = '', code = 'int main;', maxBytes?: number): Promise<InitRequest | undefined> {
    const start = async (): Promise<Container> => {
      builds += 1;
      const result = { program: program.toString('base64') };
      const builder: Partial<Container> = {
        init: () => ended({ type: 'ok' }),
        run: (_, { onResult }) => {
          onResult?.(Buffer.from(JSON.stringify(result)));
          return ended({ type: 'result', result: {}, bytes: 100 });
        },
        destroy: async () => undefined,
      };
      return builder as Container;
    };
    const cache = new BuildCache(folder, systemClock, start, maxBytes);
    const step: Build = { needs: () => true, key: 'compiler 1' };
    let given: InitRequest | undefined;
    const call = cache.init(step, { ...source, code }, { ...limits, forNamespace }, (request) => {
      given = request;
      return ended({ type: 'ok' });
    });
    expect(await call.outcome).toMatchObject({ type: 'ok' });
    return given;
  }

  const expected = {
    code: program.toString('base64'),
    binary: true,
    digest: createHash('sha256').update(program).digest('hex'),
  };

  test('come with their own digest, built and kept', async () => {
    expect(await load()).toMatchObject(expected);
    expect(await load()).toMatchObject(expected);
    expect(builds).toBe(1);
  });

  test('of a namespace that builds many take no place of another', async () => {
    const room = 64 * 1024 * 1024;
    const many = Array.from({ length: 12 }, (_, n) => `int n${n};`);
    await load('victim');
    for (const code of many) await load('other', code, room);
    // A small program counts 8 MiB.
    expect(readdirSync(folder)).toHaveLength(8);
    await load('victim');
    await load('other', many.at(-1));
    expect(builds).toBe(1 + many.length);
    await load('other', many[0]);
    expect(builds).toBe(2 + many.length);
  });

  test.each([
    ['another byte', (kept: Buffer) => kept.fill(0, kept.length - 1)],
    ['its end cut off', (kept: Buffer) => kept.subarray(0, kept.length - 1)],
    ['nothing in it', () => Buffer.alloc(0)],
  ])('are built again if the file has %s', async (_name, damage) => {
    await load();
    const [name = ''] = readdirSync(folder);
    const file = join(folder, name);
    writeFileSync(file, damage(readFileSync(file)));
    expect(await load()).toMatchObject(expected);
    expect(await load()).toMatchObject(expected);
    expect(builds).toBe(2);
  });
});

describe('programs that only quicken a start', () => {
  let folder: string;
  let noted: string[];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'gpuwhisk-background-builds-'));
    noted = [];
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const step: BackgroundBuild = {
    needs: ({ binary }) => binary,
    key: 'compiler 1',
    made: (name) => void noted.push(`made ${name}`),
    failed: (name, error) => void noted.push(`failed ${name}: ${(error as Error).message}`),
  };
  const open = (outcome: CallOutcome = { type: 'ok' }): BackgroundBuilds<BackgroundBuild> =>
    new BackgroundBuilds(folder, systemClock, async () => {
      const result = { program: program.toString('base64') };
      const builder: Partial<Container> = {
        init: () => ended(outcome),
        run: (_, { onResult }) => {
          onResult?.(Buffer.from(JSON.stringify(result)));
          return ended({ type: 'result', result: {}, bytes: 100 });
        },
        destroy: async () => undefined,
      };
      return builder as Container;
    });

  /** The code that a container of the namespace gets. */
  async function codeOf(cache: BackgroundBuilds<BackgroundBuild>, forNamespace: string): Promise<string | undefined> {
    let given: InitRequest | undefined;
    const request = { ...source, binary: true, digest: 'of archive' };
    await cache.init(step, request, { ...limits, forNamespace }, (init) => {
      given = init;
      return ended({ type: 'ok' });
    }).outcome;
    return given?.code;
  }
  const made = program.toString('base64');

  test('replace the code once they are made, also after a restart', async () => {
    const cache = open();
    expect(await codeOf(cache, 'a')).toBe(source.code);
    await until(() => noted.length === 1);
    expect([await codeOf(cache, 'a'), await codeOf(open(), 'a'), noted]).toEqual([made, made, ['made a']]);
  });

  test('are made for each namespace', async () => {
    const cache = open();
    await codeOf(cache, 'a');
    await until(() => noted.length === 1);
    expect(await codeOf(cache, 'b')).toBe(source.code);
    await until(() => noted.length === 2);
    expect(await codeOf(cache, 'b')).toBe(made);
  });

  test('are not made again after a failure, and the code is used as it is', async () => {
    const cache = open({ type: 'error', error: 'damaged', body: '' });
    for (let at = 0; at < 3; at++) expect(await codeOf(cache, 'a')).toBe(source.code);
    await until(() => noted.length > 0);
    expect(await codeOf(cache, 'a')).toBe(source.code);
    expect(noted).toEqual(['failed a: damaged']);
  });

  test('are made again if the file is damaged', async () => {
    const cache = open();
    await codeOf(cache, 'a');
    await until(() => noted.length === 1);
    const [name = ''] = readdirSync(folder);
    writeFileSync(join(folder, name), readFileSync(join(folder, name)).fill(0, 40));
    expect(await codeOf(cache, 'a')).toBe(source.code);
    await until(() => noted.length === 2);
    expect(await codeOf(cache, 'a')).toBe(made);
  });
});
