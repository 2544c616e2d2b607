// A policy that fails in a live scheduler: least-loaded decides instead, no task is lost, and no hold remains.
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Pass, Planned, Planner } from '@gpuwhisk/gpu/stages/order/plan';
import { stages } from '@gpuwhisk/gpu/policies/stages';
import type { StageEntry } from '@gpuwhisk/gpu/policies/stages';
import type { Preempt } from '@gpuwhisk/gpu/stages/preempt/preempt';
import type { Action } from '@gpuwhisk/gpu/view/decision';
import { GpuCluster } from './gpu-cluster.js';

const plans = stages.plan as Record<string, StageEntry<Planner>>;
const preempts = stages.preempt as Record<string, StageEntry<Preempt>>;
const broken = { base: 'least-loaded', plan: 'broken', preempt: 'broken' };

let plan: Planner['plan'];
let actions: Action[];
beforeEach(() => {
  actions = [];
  plans['broken'] = { settings: {}, make: () => ({ plan: (pass) => plan(pass) }) };
  preempts['broken'] = { settings: {}, make: () => () => actions };
});
afterEach(() => {
  delete plans['broken'];
  delete preempts['broken'];
});

const small = { memoryMiB: 10_000 };

/** Runs five activations, of which so many start at once: two by the spare policy, as nothing is known of them. Returns the number of policy faults. */
async function faultsOf(decide: Planner['plan'], atOnce = 2): Promise<number> {
  plan = decide;
  const cluster = await GpuCluster.start({ policy: broken });
  await cluster.tell();
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) await cluster.accept(name, small);
  expect([cluster.running, cluster.scheduler.waiting]).toEqual([names.slice(0, atOnce), 5 - atOnce]);
  const ran: string[] = [];
  for (let round = 0; round < 10 && cluster.running.length > 0; round += 1) {
    for (const name of cluster.running) {
      await cluster.finish(name);
      ran.push(name);
    }
    await cluster.tell();
    await cluster.clock.runFor(300);
  }
  expect(ran).toEqual(names);
  await cluster.tell();
  expect([cluster.scheduler.waiting, cluster.scheduler.reserved]).toEqual([0, 0]);
  const { ledger } = cluster.scheduler.view().ledger!;
  expect([ledger.reservations(), ledger.account('GPU-0')?.availableMiB]).toEqual([[], 38_000]);
  return cluster.faults();
}

const planned = (starts: Planned['starts']): Planned => ({ starts, order: [], rejected: [] });
const startOf = (task: string, gpu = 'GPU-0'): Planned['starts'][number] => ({ task, gpu, share: 1, reason: '' });
const allOf = ({ tasks }: Pick<Pass, 'tasks'>, gpu?: string): Planned =>
  planned(tasks.map(({ id }) => startOf(id, gpu)));

describe('a policy', () => {
  test.each<[string, Planner['plan']]>([
    [
      'that throws',
      () => {
        throw new Error('broken');
      },
    ],
    [
      'that calls the ledger without end',
      ({ view }) => {
        for (;;) view.ledger!.ledger.account('GPU-0');
      },
    ],
    [
      'that releases what others hold',
      ({ view }) => {
        const { ledger } = view.ledger!;
        for (const { activationId } of ledger.reservations()) ledger.release(activationId);
        throw new Error('there was nothing to release');
      },
    ],
    ['that starts a task twice', ({ tasks }) => planned([startOf(tasks[0]!.id), startOf(tasks[0]!.id)])],
    ['that starts tasks on a GPU that is not there', (pass) => allOf(pass, 'GPU-9')],
    ['that decides about tasks which do not wait', () => planned([startOf('unknown')])],
    ['that gives no list of starts', () => ({}) as Planned],
    ['that gives nothing', () => undefined as unknown as Planned],
  ])('%s', async (_, decide) => {
    expect(await faultsOf(decide)).toBeGreaterThanOrEqual(5);
  });

  test('that overfills a GPU fails when it does, and not before', async () => {
    expect(await faultsOf((pass) => allOf(pass), 3)).toBeGreaterThan(0);
  });
});

test('a policy is asked again when it wants to be, though nothing happens', async () => {
  const asked = new Set<number>();
  plan = ({ view: { at }, tasks }) => {
    asked.add(at);
    return asked.size < 3 ? { ...planned([]), order: tasks.map(({ id }) => id), wakeAt: at + 20 } : allOf({ tasks });
  };
  const cluster = await GpuCluster.start({ policy: broken });
  await cluster.tell();
  await cluster.accept('a', small);
  await cluster.clock.runFor(100);
  expect(cluster.running).toEqual(['a']);
  const [first = 0, ...later] = asked;
  expect(later).toEqual([first + 20, first + 40]);
});

test('an action on something that is gone is refused and counted, and nothing else happens', async () => {
  actions = [
    { kind: 'retire', instance: 'gone', reason: 'r' },
    { kind: 'reshare', instance: 'gone', request: 0.1, limit: 0.1, reason: 'r' },
    { kind: 'cut', device: 'gone', profiles: [], reason: 'r' },
    { kind: 'launch', function: '/alice/gone', namespace: 'alice', gpus: ['gone'], share: 1, reason: 'r' },
    { kind: 'launch', function: '/alice/a', namespace: 'alice', gpus: ['gone'], share: 1, reason: 'r' },
  ];
  expect(await faultsOf((pass) => stages.plan['least-loaded'].make({} as never, {}).plan(pass), 3)).toBe(0);
});

test('actions on what is gone are counted as refused', async () => {
  plan = (pass) => stages.plan['least-loaded'].make({} as never, {}).plan(pass);
  const cluster = await GpuCluster.start({ policy: broken });
  await cluster.tell();
  actions = [{ kind: 'retire', instance: 'gone', reason: 'r' }];
  await cluster.accept('a', small);
  const text = await cluster.metrics.registry.getSingleMetricAsString('gpuwhisk_gpu_actions_total');
  expect(text).toContain('gpuwhisk_gpu_actions_total{kind="retire",outcome="refused"} 1');
  expect(cluster.running).toEqual(['a']);
});
