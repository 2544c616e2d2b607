// Searches for shares on an idle simulated GPU: a pair that ran together gets better shares, over a crash and other
// work.
import { afterAll, expect, test } from '@jest/globals';
import type { GpuRecord } from '@gpuwhisk/common/gpu';
import type { SetPerformance } from '@gpuwhisk/controller/api/gpu-performance-views';
import type { TrialsView } from '@gpuwhisk/controller/api/gpu-performance-views';
import { hasStandIn } from '@gpuwhisk/invoker/gpu-agent/host/stand-in';
import { hasNative } from '@gpuwhisk/invoker/runtimes/native-runtime';
import { runWsk, withFolder } from '../cli/wsk-process.js';
import type { WskResult } from '../cli/wsk-process.js';
import { annotation } from '../support/api-client.js';
import { hasPython } from '../support/machine.js';
import type { ApiActivation } from '../support/api-client.js';
import { compileGpuFunction } from './gpu-functions.js';
import { removeDataDir, startPlatform, until } from '../support/running-platform.js';
import type { RunningPlatform } from '../support/running-platform.js';

const caseMs = 300_000;
const maxSampleMs = 4000;
const set = (text: string): string[] => ['--set', text];
const flags = [
  ...['--gpus', 'sim:a100-40', '--stem-cells', 'false', ...set('gpu.policy=faashare')],
  ...[
    ...set('gpu.search.idleMs=1000'),
    ...set('gpu.search.minAsked=2'),
    ...set(`gpu.search.maxSampleMs=${maxSampleMs}`),
  ],
];
const onGpus = hasStandIn() && hasNative() ? test : test.skip;
/** The function leaves the GPU idle for most of its time, so that running in pairs is faster. */
const work = { deviceMs: 40, holdMs: 100 };

let platform: RunningPlatform | undefined;
afterAll(async () => {
  if (platform === undefined) return;
  await platform.end('SIGTERM');
  removeDataDir(platform.dataDir);
}, caseMs);

async function pair({ api }: RunningPlatform): Promise<SetPerformance | undefined> {
  const { body } = await api.request<SetPerformance[]>('GET', '../gpu/quotas');
  return body.find(({ jobs }) => new Set(jobs.map(({ function: name }) => name)).size === 2);
}

/** Waits for a state of the pair's row. */
async function untilPair(
  of: RunningPlatform,
  what: string,
  holds: (row: SetPerformance | undefined) => boolean,
): Promise<void> {
  let row: SetPerformance | undefined;
  try {
    await until(what, async () => holds((row = await pair(of))), 120_000);
  } catch (error) {
    throw new Error(`${String(error)}; there is ${JSON.stringify(row)}\n${of.output()}`, { cause: error });
  }
}

async function samples({ api }: RunningPlatform): Promise<ApiActivation[]> {
  const { body } = await api.request<ApiActivation[]>('GET', '_/activations?docs=true&limit=200');
  return body.filter((record) => annotation(record, 'sample') === true);
}

/** Requests together take little longer than one. */
const batching = `import time
def main(args):
    return main_batch([args])[0]
def main_batch(requests):
    time.sleep(0.05 + 0.002 * len(requests))
    return [{"together": len(requests)} for _ in requests]
`;

/** Its runtime takes no batches. */
const single = 'const main = () => new Promise((done) => setTimeout(done, 50, {}));';

/** Has functions profiled whose requests run in batches, by the command line. */
async function profileBatches(on: RunningPlatform): Promise<void> {
  const gpu = { memoryMiB: 1500, sample: {}, sloMs: 5000, batch: 4 };
  const annotations = { gpu, idempotent: true };
  await on.api.putAction('batching', batching, { kind: 'python:default', annotations });
  await on.api.putAction('single', single, { annotations });
  const wsk = (name: string): Promise<WskResult> =>
    withFolder((directory) => runWsk(['--apihost', on.url, '--auth', on.auth, 'gpu', 'profile', name], { directory }));
  const profileOf = async (name: string): Promise<string> => {
    let text = '';
    await until(`${name} has a profile`, async () => (text = (await wsk(name)).stdout).includes(' done'), 120_000);
    return text;
  };
  const shown = await profileOf('batching');
  const times = [1, 2, 4].map((batch) => Number(new RegExp(`^ +${batch} +([\\d.]+) ms`, 'm').exec(shown)?.[1]));
  // Four requests one after the other would take four times as long.
  expect(times[2]).toBeGreaterThan(50);
  expect(times[2]).toBeLessThan(2 * times[0]!);
  expect(shown).toContain('request 10 %, limit 20 %, batch 4');
  const of = (await samples(on)).filter(({ name }) => name === 'batching');
  const sizes = of.map((record) => [
    (annotation(record, 'gpu') as unknown as GpuRecord).batch ?? 1,
    (record.response.result as { together: number }).together,
  ]);
  for (const [batch, together] of sizes) expect(together).toBe(batch);
  expect(new Set(sizes.map(([batch]) => batch))).toEqual(new Set([1, 2, 4]));
  const alone = await profileOf('single');
  expect(alone).toContain('request 10 %, limit 20 %, batch 1');
  expect(alone).toMatch(/the trial with batch 2 at 10 % failed: .*: The runtime of the action takes no batches\./);
}

onGpus(
  'shares of a pair are measured while the GPU idles, and kept over a restart; a function with an SLO is profiled',
  async () => {
    const first = (platform = await startPlatform({ flags }));
    const code = compileGpuFunction();
    const names = ['one', 'other'];
    for (const name of names) {
      // A fill is measured only while the GPU idles. The GPU does not idle before both functions have run together.
      const annotations = { gpu: { memoryMiB: 1500, sample: work, features: { smUtil: 0.3 } }, idempotent: true };
      await first.api.putAction(name, code, { kind: 'native:1', annotations });
    }
    await until(
      'both ran beside each other often enough for a search',
      async () => {
        for (const name of names) await first.api.run(name, work);
        await Promise.all(names.map((name) => first.api.run(name, work)));
        return ((await pair(first))?.search.asked ?? 0) >= 2;
      },
      90_000,
    );
    // The number of measured points depends on the possible gain.
    await untilPair(first, 'the search has ended', (row) => row?.search.stage === 'done' && row.points.length > 0);
    const { points } = (await pair(first))!;
    const sums = points.map(({ slowdowns }) => slowdowns.reduce((sum, one) => sum + one, 0));
    expect(sums).toEqual(sums.toSorted((one, other) => one - other));
    expect((await samples(first)).length).toBeGreaterThan(0);
    const { record } = await first.api.run('one', work);
    expect(record.response.success).toBe(true);
    expect((annotation(record, 'gpu') as unknown as GpuRecord).queueMs).toBeLessThan(maxSampleMs);
    expect(await first.end('SIGTERM')).toBe(0);
    const next = (platform = await startPlatform({ flags, dataDir: first.dataDir }));
    expect(await pair(next)).toMatchObject({ points });

    // With an SLO, request and limit are found from the creation of the action on.
    const annotations = { gpu: { memoryMiB: 1500, sample: work, sloMs: 6000 }, idempotent: true };
    await next.api.putAction('strict', code, { kind: 'native:1', annotations });
    const profile = async (): Promise<TrialsView> =>
      (await next.api.request<TrialsView>('GET', '../gpu/functions/strict/profile')).body;
    let shown: TrialsView | undefined;
    const isDone = async (): Promise<boolean> => (shown = await profile()).state === 'done';
    await until('the function has a profile', isDone, 120_000).catch((error: unknown) => {
      throw new Error(`${String(error)}; there is ${JSON.stringify(shown)}\n${next.output()}`, { cause: error });
    });
    const [kind] = (await profile()).kinds;
    expect(kind).toMatchObject({ gpuType: 'a100-40', mode: 'mps', profile: { batch: 1, keepsGoal: true } });
    expect(kind?.profile?.ms).toBeLessThanOrEqual(3000);
    expect(kind?.trials[0]).toMatchObject({ batch: 1, share: 10, ms: expect.any(Number) });
    if (hasPython) await profileBatches(next);
  },
  caseMs,
);
