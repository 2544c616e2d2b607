// Policies of the registry make decisions on a platform with simulated GPUs.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import type { DecisionRecord } from '@gpuwhisk/common/gpu-decisions';
import type { JsonObject } from '@gpuwhisk/common/json';
import { usedPlaces } from '@gpuwhisk/gpu/ledger/used-places';
import { policies } from '@gpuwhisk/gpu/policies/registry';
import { readPass } from '@gpuwhisk/gpu/testing/saved-pass';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { ApiClient } from '../support/api-client.js';
import { startPlatform } from '../support/running-platform.js';

const caseMs = 120_000;
const main = fileURLToPath(new URL('../../../scripts/serve.cjs', import.meta.url));
const sleeper = 'async function main({ ms }) { await new Promise((done) => setTimeout(done, ms)); return { ms }; }';
interface Tried {
  arrivals: number;
  results: { policy: string; withSlo: number; missed: number; meanMs: number; problem?: string }[];
}

const functions = {
  strict: { memoryMiB: 2000, sloMs: 60_000 },
  bestEffort: { memoryMiB: 3000 },
  fixed: { memoryMiB: 2000, mpsPercent: 30, sloMs: 60_000 },
};

if (!hasStandIn()) console.info('No stand-in for a GPU is built here: policies are not tested on a platform.');

(hasStandIn() ? describe : describe.skip)('on two simulated GPUs', () => {
  test.each(Object.keys(policies))(
    'policy %s runs all that comes',
    async (policy) => {
      const flags = ['--gpus', 'sim:a100-40x2', '--stem-cells', 'false', '--set', `gpu.policy=${policy}`];
      const platform = await startPlatform({ flags });
      try {
        const { api } = platform;
        for (const [name, gpu] of Object.entries(functions)) {
          await api.putAction(name, sleeper, { annotations: { gpu } });
        }
        const submitted = Object.keys(functions).flatMap((name) => [name, name]);
        const ids = await Promise.all(submitted.map((name) => api.submit(name, { ms: 100 })));
        const records = await Promise.all(ids.map((id) => api.record(id)));
        expect(records.map(({ response }) => response.result)).toEqual(submitted.map(() => ({ ms: 100 })));
        const { body } = await api.request<DecisionRecord[]>('GET', `../gpu/decisions?activation=${ids[0] ?? ''}`);
        expect(new Set(body.map((one) => one.policy))).toEqual(new Set([policy]));
        const operator = new ApiClient(platform.url, platform.operatorAuth);
        const saved = await operator.request<JsonObject>('GET', '../gpu/view');
        const { policy: inForce, view } = readPass(saved.body);
        expect([inForce.name, usedPlaces(view.ledger).length]).toEqual([policy, 2]);
      } finally {
        await platform.stop();
      }
    },
    caseMs,
  );
});

(hasStandIn() ? test : test.skip)(
  'instances come ahead of requests and go, and best effort gives way to an SLO',
  async () => {
    const policy = JSON.stringify({
      ...{ base: 'least-loaded', scale: 'reactive', preempt: 'by-stop' },
      settings: { windowS: 5, idleS: 2, graceMs: 100 },
    });
    const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', `gpu.policy=${policy}`];
    const platform = await startPlatform({ flags });
    try {
      const { api } = platform;
      const begun = async (kind: string): Promise<number> => {
        const text = await (await fetch(new URL('/metrics', platform.url))).text();
        const line = new RegExp(`gpuwhisk_gpu_actions_total\\{kind="${kind}",outcome="begun"\\} (\\d+)`);
        return Number(line.exec(text)?.[1] ?? 0);
      };
      const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
        for (let look = 0; look < 300; look += 1) {
          if (await isSo()) return;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
        throw new Error(`${what} has not come about`);
      };
      await api.putAction('scaled', sleeper, { annotations: { gpu: { memoryMiB: 2000, mpsPercent: 10 } } });
      // Requests one after another keep one instance busy, and the reserve launches a second one.
      await until('an instance is launched', async () => {
        await api.record(await api.submit('scaled', { ms: 400 }));
        return (await begun('launch')) > 0;
      });
      await until('instances are retired', async () => (await begun('retire')) > 0);
      const retired = await begun('retire');
      await api.putAction('long', sleeper, { annotations: { gpu: { memoryMiB: 30_000 } } });
      await api.putAction('strict', sleeper, { annotations: { gpu: { memoryMiB: 30_000, sloMs: 30_000 } } });
      const long = await api.submit('long', { ms: 50_000 });
      await until('it runs', async () => {
        const { body } = await api.request<{ functions: { running: number }[] }[]>('GET', '../gpu/devices');
        return body.some(({ functions: there }) => there.some(({ running }) => running > 0));
      });
      const strict = await api.record(await api.submit('strict', { ms: 10 }));
      expect(strict.response.result).toEqual({ ms: 10 });
      expect((await api.record(long)).response).toMatchObject({ success: false });
      expect(await begun('retire')).toBeGreaterThan(retired);
    } finally {
      await platform.stop();
    }
  },
  caseMs,
);

(hasStandIn() ? test : test.skip)(
  'policies are tried on what has arrived, and on arrivals that are given',
  async () => {
    const flags = ['--gpus', 'sim:a100-40', '--stem-cells', 'false', '--set', 'gpu.policy=least-loaded'];
    const platform = await startPlatform({ flags });
    try {
      const { api } = platform;
      const operator = new ApiClient(platform.url, platform.operatorAuth);
      const gpu = { memoryMiB: 2000, sloMs: 60_000 };
      await api.putAction('measured', sleeper, { annotations: { gpu } });
      // The first run is a cold start, which gives no solo time.
      for (let runs = 0; runs < 4; runs += 1) await api.record(await api.submit('measured', { ms: 50 }));
      const tryPolicy = async (body: JsonObject): Promise<{ status: number; body: Tried }> =>
        operator.request<Tried>('POST', '../gpu/policy/trials', body);
      const { status, body } = await tryPolicy({ policy: 'exclusive', minutes: 10 });
      expect(status).toBe(200);
      expect(body).toMatchObject({ arrivals: 4, leftOut: 0, gpus: 1 });
      expect(body.results).toMatchObject([
        { policy: 'least-loaded', withSlo: 4, missed: 0 },
        { policy: 'exclusive', withSlo: 4, missed: 0 },
      ]);
      expect(body.results.flatMap(({ problem }) => problem ?? [])).toEqual([]);
      for (const { meanMs } of body.results) expect(meanMs).toBeGreaterThan(40);
      const arrivals = [
        { function: 'long', atMs: 0, soloMs: 1000, memoryMiB: 1000 },
        { function: 'short', atMs: 1, soloMs: 10, memoryMiB: 1000 },
        { function: 'next', atMs: 2, soloMs: 1000, memoryMiB: 1000 },
      ];
      const given = await tryPolicy({ policy: { base: 'exclusive', order: 'shortest-first' }, arrivals });
      expect(given.body).toMatchObject({
        arrivals: 3,
        results: [{ policy: 'least-loaded' }, { policy: 'exclusive order=shortest-first' }],
      });
      expect(await tryPolicy({ policy: 'nonsense' })).toMatchObject({
        ...{ status: 400, body: { error: expect.stringContaining("there is no policy 'nonsense'") } },
      });
      expect((await api.request('POST', '../gpu/policy/trials', { policy: 'exclusive' })).status).toBe(403);
    } finally {
      await platform.stop();
    }
  },
  caseMs,
);

test('a policy that there is not is told with those that there are', async () => {
  const data = await mkdtemp(join(tmpdir(), 'gpuwhisk-policies-'));
  const args = [main, '--port', '0', '--data', data, '--set', 'gpu.policy=nonsense'];
  const failed = promisify(execFile)(process.execPath, args, { env: { ...process.env, NODE_OPTIONS: '' } });
  const told = expect.stringMatching(/gpu\.policy: there is no policy 'nonsense'; there are auto, .*least-loaded/);
  try {
    await expect(failed).rejects.toMatchObject({ code: 1, stderr: told });
  } finally {
    await rm(data, { recursive: true });
  }
});
