// Functions that declare nothing on a simulated GPU: a set that gains nothing is split, and it is seen.
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { JsonObject } from '@gpuwhisk/common/json';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { runWsk } from '../cli/wsk-process.js';
import type { ApiActivation, ApiClient } from '../support/api-client.js';
import { newSubject } from '../support/operator.js';
import { startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';
import { compileGpuFunction, disturbingFunction } from './gpu-functions.js';

const caseMs = 120_000;
const soonMs = 60_000;
const isHere = hasStandIn() && hasNative();

/** Whether a run was there when another one started. */
const isAtStart = (one: ApiActivation, other: ApiActivation): boolean =>
  other.start <= one.start && one.start < other.end;
/** Whether two runs overlapped. */
const overlap = (one: ApiActivation, other: ApiActivation): boolean => one.start < other.end && other.start < one.end;

(isHere ? describe : describe.skip)('sets of plain functions on a simulated GPU', () => {
  let platform: RunningPlatform;
  let code: Buffer;
  let disturbing: Buffer;
  beforeAll(() => {
    code = compileGpuFunction();
    disturbing = compileGpuFunction(disturbingFunction);
  }, caseMs);
  afterEach(() => platform.stop(), caseMs);

  const start = async (...flags: string[]): Promise<void> => {
    platform = await startPlatform({ flags: ['--gpus', 'sim:a100-40', '--stem-cells', 'false', ...flags] });
  };
  const put = (client: ApiClient, name: string, program = code, gpu: JsonObject = {}): Promise<unknown> =>
    client.putAction(name, program, { kind: 'native:1', annotations: { gpu: { memoryMiB: 2000, ...gpu } } });
  const top = async (): Promise<string> => {
    const flags = ['--apihost', platform.url, '--auth', platform.auth];
    return (await runWsk([...flags, 'gpu', 'top', '--once'], { directory: platform.dataDir })).stdout;
  };

  test(
    'two that disturb each other are split after their trial, and run one after the other from then on',
    async () => {
      await start();
      const names = ['fa', 'fb'];
      for (const name of names) await put(platform.api, name, disturbing);
      const call = (name: string) => platform.api.run(name, { deviceMs: 100 });
      for (const name of names) for (let run = 0; run < 5; run += 1) await call(name);
      await until(
        'the set is split',
        async () => {
          await Promise.all(names.map(call));
          return (await top()).includes('split from /guest/f');
        },
        soonMs,
      );
      expect(await top()).toMatch(/split from \/guest\/f[ab]: lost \d+ % against turns, takes \d\.\d\d times as long/);
      for (let round = 0; round < 3; round += 1) {
        const [one, other] = await Promise.all(names.map(call));
        expect(overlap(one!.record, other!.record)).toBe(false);
      }
    },
    caseMs,
  );

  test(
    'three of as many namespaces take turns, and run by twos if they allow to be shared with others',
    async () => {
      await start();
      const tenants = await Promise.all(
        ['one', 'two', 'three'].map((name) => newSubject(platform, `tenant-${name}`, {})),
      );
      const mostAtOnce = async (isolation: string): Promise<number> => {
        for (const tenant of tenants) await put(tenant, isolation, code, { isolation });
        const ids = await Promise.all(
          tenants.map((tenant) => tenant.submit(isolation, { deviceMs: 10, holdMs: 2000 })),
        );
        const records = await Promise.all(ids.map((id, at) => tenants[at]!.record(id)));
        for (const { response } of records) expect(response).toMatchObject({ success: true, result: { result: 0 } });
        return Math.max(...records.map((one) => records.filter((other) => isAtStart(one, other)).length));
      };
      expect([await mostAtOnce('namespace'), await mostAtOnce('shared')]).toEqual([1, 2]);
    },
    caseMs,
  );
});
