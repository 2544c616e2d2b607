// Workloads with a bound, under every policy that does not predict for them itself.
import { describe, expect, test } from '@jest/globals';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { dividedSms, gpuOf, runningTask, taskOf } from '../testing/fixtures.js';
import { viewOf } from '../testing/views.js';
import type { InstanceState, Task, WorkloadState } from '../view/view.js';
import { makePolicy } from './make-policy.js';
import type { Policy } from './policy.js';
import { policies } from './registry.js';

const make = (name: string): Policy =>
  makePolicy(name, { predictorOf: () => dividedSms, admission: 'best-effort', random: seededRandom(1) });
const gpus = [gpuOf('g0'), gpuOf('g1')];
const training: WorkloadState = { id: 'w', node: 'n', device: 'g0', tolerated: 0.1 };
const suffering = { ...training, measured: 0.3, reportedAt: 1, state: 'beyond-bound' } as const;
const well = { ...training, measured: 0.05, reportedAt: 2, state: 'within-bound' } as const;
const placesOf = (policy: Policy, at: number, workloads: WorkloadState[], waiting: Task[]): string[] =>
  policy
    .decide(viewOf({ at, gpus, workloads, waiting }), { kind: 'timer' })
    .starts.map(({ task, gpu }) => `${task} ${gpu}`);
const [f, g] = [taskOf('f', { function: '/a/f' }), taskOf('g', { function: '/a/g', memoryMiB: 9500 })] as [Task, Task];

describe.each(Object.keys(policies).filter((name) => !['exclusive', 'smore'].includes(name)))('policy %s', (name) => {
  test('starts nothing beside a workload that suffers, nor a minute after, and longer each time', () => {
    const policy = make(name);
    const started = (at: number, workload: WorkloadState): string[] => placesOf(policy, at, [workload], [f, g]).sort();
    expect(started(0, suffering)).toEqual([expect.stringMatching(/^. g1$/)]);
    expect(started(59_000, well)).toEqual([expect.stringMatching(/^. g1$/)]);
    expect(started(60_000, well)).toHaveLength(2);
    expect(started(61_000, suffering)).toHaveLength(1);
    expect(started(180_000, well)).toHaveLength(1);
    expect(started(181_001, well)).toHaveLength(2);
  });

  test('says why, with the time that is left', () => {
    const view = viewOf({ gpus: gpus.slice(0, 1), workloads: [suffering], waiting: [f] });
    const { starts, rejected, order } = make(name).decide(view, { kind: 'timer' });
    expect([starts, order]).toEqual([[], ['f']]);
    const reason = 'a workload there is slower than it tolerates beside functions, or was just now';
    expect(rejected).toEqual([{ task: 'f', what: 'g0', reason, numbers: { leftMs: 60_000 } }]);
  });

  test('has a function give way on the report', () => {
    const share = { request: 1, limit: 1, class: 1 };
    const instance: InstanceState = {
      ...{ id: 'c1', function: '/a/f', namespace: 'a', gpus: ['g0'], share, memoryMiB: 1000, tasks: ['f'] },
      state: 'running',
    };
    const busy = [gpuOf('g0', { running: [runningTask(f, 1)] })];
    const view = viewOf({ gpus: busy, workloads: [suffering], instances: [instance] });
    const { actions = [] } = make(name).decide(view, { kind: 'report' });
    expect(actions).toMatchObject([{ kind: 'retire', instance: 'c1', graceMs: 10_000 }]);
  });

  test('goes on in the state that it had', () => {
    const policy = make(name);
    placesOf(policy, 0, [suffering], [f]);
    const again = make(name);
    again.restore?.(JSON.parse(JSON.stringify(policy.saved?.())));
    expect(placesOf(again, 30_000, [well], [f, g]).sort()).toEqual([expect.stringMatching(/^. g1$/)]);
  });
});
