import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { makePolicy } from '../policies/make-policy.js';
import { dividedSms, taskOf } from '../testing/fixtures.js';
import { replay } from './replay.js';
import type { ReplayJob, ReplayRun } from './replay.js';
import type { SimulatedPlace } from './simulated-gpu.js';

const truth = { noise: 0, slowdowns: (all: readonly unknown[]) => new Float64Array(all.length).fill(1), used: () => 1 };
const device = (id: string, changes: Partial<SimulatedPlace> = {}): SimulatedPlace => ({
  ...{ id, node: 'n', type: 'a100-40', mode: 'mps', memoryMiB: 38_000 },
  ...changes,
});

/** Two best-effort requests of 1 s a second for two minutes, on GPUs that stage `geometry: protean` may cut. */
function run(places: readonly SimulatedPlace[], cutFails?: () => string): ReplayRun {
  const policy = makePolicy(
    { base: 'least-loaded', geometry: 'protean' },
    { predictorOf: () => dividedSms, random: seededRandom(1), admission: 'best-effort' },
  );
  const jobs = Array.from({ length: 240 }, (_, at): ReplayJob => {
    const task = taskOf(`t${at}`, { arrivedAt: at * 500, memoryMiB: 2000, share: 0.2 });
    return { task, workload: 'f', soloMs: 1000, startMs: 0 };
  });
  const times = { reshareMs: 10, cutMs: 2000, acquireMs: 1 };
  return replay(jobs, { places, times, ...(cutFails && { cutFails }) }, truth, policy, seededRandom(1));
}

const cutsOf = ({ actions }: ReplayRun): string[] =>
  actions.flatMap(({ at, action }) =>
    action.kind === 'cut' ? [`${at / 1000} s ${action.device} ${action.profiles.join('+')}`] : [],
  );

describe('stage geometry in replay', () => {
  test('devices drain, are cut one after the other and work again; all jobs end', () => {
    const result = run([device('g0'), device('g1')]);
    expect(cutsOf(result)).toEqual(['60 s g0 4g.20gb+2g.10gb+1g.5gb', '80 s g1 4g.20gb+2g.10gb+1g.5gb']);
    expect(result.finished).toHaveLength(240);
    const onSlices = result.finished.filter(({ gpu }) => gpu.includes(':'));
    expect(onSlices.length).toBeGreaterThan(0);
    // From a drain of at most 1 s and a cut of 2 s on.
    for (const { gpu, startedAt } of onSlices)
      expect(startedAt).toBeGreaterThan(gpu.startsWith('g0') ? 62_000 : 82_000);
  });

  test('a device that may not be cut is left; one whose driver refuses works on and is not tried again', () => {
    expect(cutsOf(run([device('g0', { mayNotCut: 'gpu.manage.mig is off on its node' })]))).toEqual([]);
    const refused = run([device('g0'), device('g1')], () => 'No room.');
    expect(cutsOf(refused).map((cut) => cut.split(' ')[2])).toEqual(['g0', 'g1']);
    expect([refused.finished.length, refused.finished.some(({ gpu }) => gpu.includes(':'))]).toEqual([240, false]);
  });
});
