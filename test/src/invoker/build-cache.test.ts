import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type {
  Call,
  CallLimits,
  Container,
  InitRequest,
  CallOutcome,
} from '@gpuwhisk/invoker/containers/container-factory';
import { BuildCache } from '@gpuwhisk/invoker/containers/build-cache';
import type { Build } from '@gpuwhisk/invoker/containers/runtime-launch';

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
  async function load(): Promise<InitRequest | undefined> {
    const cache = new BuildCache(folder, systemClock, async () => {
      builds += 1;
      const result = { program: program.toString('base64') };
      const builder: Partial<Container> = {
        init: () => ended({ type: 'ok' }),
        run: () => ended({ type: 'result', result, bytes: 100 }),
        destroy: async () => undefined,
      };
      return builder as Container;
    });
    const step: Build = { needs: () => true, key: 'compiler 1' };
    let given: InitRequest | undefined;
    const call = cache.init(step, source, limits, (request) => {
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
