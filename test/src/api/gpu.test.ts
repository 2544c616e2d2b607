import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { gpuTable, cordonTable, workloadTable } from '@gpuwhisk/common/gpu';
import type { Resident, Workload } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { TriedSets } from '@gpuwhisk/controller/gpu/scheduler/tried-sets';
import type { TriedSet } from '@gpuwhisk/gpu/share/set-trials';
import { DeviceCordons } from '@gpuwhisk/controller/gpu/state/desired-state';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { GpuWorkloads } from '@gpuwhisk/controller/gpu/state/gpu-workloads';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { alice, bob, errorOf, idleGpuScheduler, operator, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

const devicesPath = '/api/v1/gpu/devices';
const workloadsPath = '/api/v1/gpu/workloads';

let api: Api;
let tried: TriedSet[] = [];
beforeAll(async () => {
  api = await startApi({ gpuScheduler: { ...idleGpuScheduler, triedSets: () => new TriedSets(tried) } });
});
afterAll(() => api.close());
beforeEach(async () => {
  tried = [];
  for (const { id } of await listed(operator)) await api.request('DELETE', `${workloadsPath}/${id}`, { as: operator });
  await api.state.deleteRow(gpuTable, 'invoker0');
});

async function listed(as: Account): Promise<Workload[]> {
  return (await api.request('GET', workloadsPath, { as })).json as Workload[];
}
const add = (body: unknown, as = alice): Promise<Reply> => api.request('POST', workloadsPath, { body, as });
const devices = async (as: Account): Promise<unknown> => (await api.request('GET', devicesPath, { as })).json;

const share = { shareClass: 30, smRequest: 0.3, smLimit: 0.3, memoryMiB: 2048 } as const;
const classify: Resident = {
  ...{ container: 'c1', action: '/alice/classify', namespace: 'alice', device: 'GPU-0', share, memoryMiB: 2048 },
  ...{ isolation: 'namespace', activations: ['x', 'y'] },
};

describe('devices', () => {
  test('are none where no invoker has one', async () => {
    expect(await devices(alice)).toEqual([]);
  });

  test('show a namespace what is its own by name, and all else without', async () => {
    const row = nodeRow([a100('GPU-0')], [classify]);
    row.status[0]!.health = { state: 'draining', reasons: ['/alice/classify overran its memory'] };
    await setNode(api.state, row);
    const shown = {
      ...{ invoker: 'invoker0', uuid: 'GPU-0', index: 0, name: 'NVIDIA A100-SXM4-40GB', type: 'a100-40', mode: 'mps' },
      ...{ smCount: 108, memoryMiB: 40_960, simulated: true, slices: [], usedMemoryMiB: 0, utilisation: 0.25 },
      ...{ workloads: [] },
    };
    const anonymous = { share: 0.3, smRequest: 0.3, smLimit: 0.3, memoryMiB: 2048, running: 2 };
    const named = { ...anonymous, container: 'c1', action: '/alice/classify', namespace: 'alice' };
    const health = { state: 'draining' };
    expect(await devices(alice)).toEqual([{ ...shown, health, functions: [named] }]);
    expect(await devices(bob)).toEqual([{ ...shown, health, functions: [anonymous] }]);
    expect(await devices(operator)).toEqual([
      { ...shown, health: { ...health, reasons: ['/alice/classify overran its memory'] }, functions: [named] },
    ]);
  });

  test('tell which sets a function was tried in, without names of another namespace', async () => {
    const other: Resident = { ...classify, container: 'c2', action: '/bob/secret', namespace: 'bob' };
    await setNode(api.state, nodeRow([a100('GPU-0')], [classify, other]));
    const set = (names: readonly [string, string], changes: Partial<TriedSet>): TriedSet => {
      const [one, two] = names.map((name) => `${name}@1#1:100`) as [string, string];
      const ratios = { [one]: [0.75, 0.75], [two]: [0.5, 0.5] };
      const known = {
        members: [one, two],
        functions: names,
        ratios,
        runs: 4,
        state: 'trying',
        driverMajor: 0,
      } as const;
      return { gpuType: 'a100-40', mode: 'mps', ...known, ...changes };
    };
    const both = ['/alice/classify', '/bob/secret'] as const;
    tried = [
      set(both, {
        state: 'split',
        splitAt: 5,
        ratios: { '/alice/classify@1#1:100': [0.4, 0.4], '/bob/secret@1#1:100': [0.2, 0.2] },
      }),
    ];
    const toldOf = async (as: Account): Promise<unknown[]> =>
      ((await devices(as)) as { functions: { sets?: { text: string }[] }[] }[]).map(({ functions }) =>
        functions.map(({ sets }) => sets?.map(({ text }) => text)),
      );
    expect(await toldOf(alice)).toEqual([
      [['split from a function of another namespace: lost 40 % against turns, takes 2.50 times as long'], undefined],
    ]);
    expect(await toldOf(operator)).toEqual([
      [
        ['split from /bob/secret: lost 40 % against turns, takes 2.50 times as long'],
        ['split from /alice/classify: lost 40 % against turns, takes 5.00 times as long'],
      ],
    ]);
    tried = [set(both, { state: 'stays' }), set(['/alice/classify', '/alice/gone'], { state: 'stays' })];
    expect(await toldOf(operator)).toMatchObject([
      [['stays beside /bob/secret: 1.25 times alone in turns, takes 1.33 times as long'], {}],
    ]);
    tried = [set(both, { ratios: { '/alice/classify@1#1:100': [], '/bob/secret@1#1:100': [] }, runs: 1 })];
    expect(await toldOf(operator)).toMatchObject([[['trying beside /bob/secret (1 run measured)'], {}]]);
  });

  test('need a key', async () => {
    expect((await api.request('GET', devicesPath, { as: null })).status).toBe(401);
  });
});

describe('what operators want of a device', () => {
  const wish = (wanted: unknown, as = operator, uuid = 'GPU-0') =>
    api.request('PUT', `${devicesPath}/${uuid}`, { as, body: wanted });

  test('reaches the nodes, and a later life of the controller', async () => {
    await setNode(api.state, nodeRow([a100('GPU-0')]));
    const reply = await wish({ wish: 'cordon' });
    expect([reply.status, reply.json]).toEqual([200, { uuid: 'GPU-0', wish: 'cordon', at: expect.any(Number) }]);
    expect((await wish({ wish: 'drain' })).status).toBe(200);
    expect((await api.state.rows(cordonTable)).get('GPU-0')).toMatchObject({ wish: 'drain' });
    const state = embeddedState(systemClock);
    await new DeviceCordons(api.store, state, systemClock).open();
    expect(await state.rows(cordonTable)).toEqual(await api.state.rows(cordonTable));
  });

  test("is an operator's to say, of a device that there is, in one of three words", async () => {
    await setNode(api.state, nodeRow([a100('GPU-0')]));
    expect((await wish({ wish: 'cordon' }, alice)).status).toBe(403);
    expect((await wish({ wish: 'cordon' }, operator, 'GPU-9')).status).toBe(404);
    for (const bad of [{ wish: 'rest' }, {}, [], { wish: 'cordon', at: 1 }]) expect((await wish(bad)).status).toBe(400);
  });
});

test('slices that NVIDIA lets no device have, or on a node whose devices are not cut, are refused with the reason', async () => {
  const cut = async (...profiles: string[]): Promise<[number, string | undefined]> => {
    const reply = await api.request('PUT', `${devicesPath}/GPU-0/slices`, { as: operator, body: { profiles } });
    return [reply.status, (reply.json as { error?: string }).error];
  };
  await setNode(api.state, nodeRow([a100('GPU-0')]));
  const [status, error] = await cut('4g.20gb', '4g.20gb');
  expect([status, error]).toEqual([
    400,
    expect.stringContaining('4g.20gb, 4g.20gb do not fit together on type a100-40'),
  ]);
  expect((await cut('3g.40gb'))[1]).toContain("'3g.40gb' is no profile of type a100-40; there are 1g.5gb, 1g.10gb");
  expect((await cut('4g.20gb', '3g.20gb'))[0]).toBe(200);
  await setNode(api.state, nodeRow([a100('GPU-0')], [], { cuts: false }));
  expect(await cut('3g.20gb')).toEqual([403, 'The GPU is not cut: gpu.manage.mig is off on its node.']);
});

describe('workloads', () => {
  test('are registered, listed to their namespace and to operators, and forgotten', async () => {
    await setNode(api.state, nodeRow([a100('GPU-0')]));
    const reply = await add({ name: 'train', device: 'GPU-0', pid: 77, memoryMiB: 9000, maxDegradation: 0.1 });
    expect(reply.status).toBe(200);
    const added = reply.json as Workload;
    expect(added).toEqual({
      ...{ id: expect.stringMatching(/^[0-9a-f]{16}$/), name: 'train', origin: 'registered', invoker: 'invoker0' },
      ...{
        device: 'GPU-0',
        pid: 77,
        since: expect.any(Number),
        memoryMiB: 9000,
        maxDegradation: 0.1,
        namespace: 'alice',
        attested: false,
      },
    });
    expect(await listed(alice)).toEqual([added]);
    expect(await listed(operator)).toEqual([added]);
    expect(await listed(bob)).toEqual([]);
    expect((await api.state.rows(workloadTable)).get(added.id)).toMatchObject({ name: 'train', pid: 77 });
    expect(await devices(alice)).toMatchObject([{ workloads: [{ id: added.id }] }]);
    expect(await devices(bob)).toMatchObject([{ workloads: [] }]);
    const path = `${workloadsPath}/${added.id}`;
    expect((await api.request('DELETE', path, { as: bob })).status).toBe(404);
    expect((await api.request('PUT', path, { as: bob, body: { pid: 1 } })).status).toBe(404);
    expect((await api.request('DELETE', path)).json).toEqual(added);
    expect((await api.request('DELETE', path)).status).toBe(404);
    expect(await listed(operator)).toEqual([]);
    expect(await api.state.rows(workloadTable)).toEqual(new Map());
  });

  test('survive a restart: the next life shows them to the nodes', async () => {
    await setNode(api.state, nodeRow([a100('GPU-0')]));
    const added = (await add({ name: 'train' })).json as Workload;
    const state = embeddedState(systemClock);
    await new GpuWorkloads({
      ...{
        store: api.store,
        state,
        clock: systemClock,
        table: new GpuTable(state, systemClock, createLogger({ level: 'silent' })),
      },
      ...{ random: seededRandom(2), logger: createLogger({ level: 'silent' }) },
    }).open();
    expect(await state.rows(workloadTable)).toEqual(await api.state.rows(workloadTable));
    expect((await state.rows(workloadTable)).get(added.id)).toMatchObject({ name: 'train' });
  });

  test('are forgotten when the agent of their node says that they have ended', async () => {
    await setNode(api.state, nodeRow([a100('GPU-0')]));
    const [gone, stays] = [(await add({ name: 'gone' })).json, (await add({ name: 'stays' })).json] as Workload[];
    await api.state.setRow(workloadTable, gone!.id, { ...gone!, ended: true } as unknown as JsonObject);
    const names = async (): Promise<string[]> => (await listed(operator)).map(({ name }) => name);
    while ((await names()).includes('gone')) await new Promise((done) => setTimeout(done, 10));
    expect(await names()).toEqual(['stays']);
    expect([...(await api.state.rows(workloadTable)).keys()]).toEqual([stays!.id]);
  });

  test('that are to be started get what makes them MPS clients, and their process later', async () => {
    const env = { CUDA_VISIBLE_DEVICES: 'GPU-1', CUDA_MPS_PIPE_DIRECTORY: '/run/mps/1' };
    const row = nodeRow([a100('GPU-0'), a100('GPU-1')], [], { clientEnv: { 'GPU-1': env } });
    row.status[0]!.usedMemoryMiB = 30_000;
    await setNode(api.state, row);
    const reply = await add({ name: 'train', start: true, mpsPercent: 40, memoryMiB: 512, command: 'python train.py' });
    const added = reply.json as Workload;
    expect(added).toMatchObject({
      ...{ origin: 'started', device: 'GPU-1', maxDegradation: 0.05, command: 'python train.py' },
      env: {
        ...{ ...env, CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: '40', CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: '0=512M' },
        GPUWHISK_WORKLOAD_TOKEN: expect.stringMatching(/^[0-9a-f]{32}$/),
      },
    });
    const changed = await api.request('PUT', `${workloadsPath}/${added.id}`, { body: { pid: 4711, processStart: 99 } });
    const rated = await api.request('PUT', `${workloadsPath}/${added.id}`, { body: { baselineRate: 12.5, rate: 10 } });
    expect(rated.json).toMatchObject({ pid: 4711, baselineRate: 12.5, rate: 10 });
    for (const body of [{}, { processStart: 9 }, { rate: 0 }, { baselineRate: 'fast' }]) {
      expect((await api.request('PUT', `${workloadsPath}/${added.id}`, { body })).status).toBe(400);
    }
    expect(changed.json).toMatchObject({ id: added.id, pid: 4711, processStart: 99 });
    expect(await listed(alice)).toEqual([rated.json]);
    expect((await listed(alice))[0]).not.toHaveProperty('env');
    const without = await add({ name: 'train', start: true, device: 'GPU-0' });
    expect([without.status, errorOf(without)]).toEqual([409, 'Device GPU-0 takes no MPS clients.']);
  });

  test('that are to be started have no larger share than their namespace may', async () => {
    const bounded = await startApi({ limits: { maxGpuShare: 50 } });
    try {
      const env = { CUDA_MPS_PIPE_DIRECTORY: '/run/mps/0', CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: '100' };
      await setNode(bounded.state, nodeRow([a100('GPU-0')], [], { clientEnv: { 'GPU-0': env } }));
      const start = (more: object): Promise<Reply> =>
        bounded.request('POST', workloadsPath, { body: { name: 'train', start: true, ...more }, as: alice });
      const tooLarge = await start({ mpsPercent: 70 });
      expect([tooLarge.status, errorOf(tooLarge)]).toEqual([
        429,
        'Too large a share of a GPU requested (requested: 70, allowed: 50, limit: maxGpuShare).',
      ]);
      const started = await start({});
      expect(started.json).toMatchObject({ mpsPercent: 50, env: { CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: '50' } });
    } finally {
      await bounded.close();
    }
  });

  test('have a bound that covers no more than the share of their namespace, unless an operator sets it', async () => {
    const bounded = await startApi({ limits: { maxGpuShare: 30 } });
    try {
      await setNode(bounded.state, nodeRow([a100('GPU-0')]));
      const body = { name: 'train', device: 'GPU-0', maxDegradation: 0 };
      const added = (await bounded.request('POST', workloadsPath, { body, as: alice })).json as Workload;
      expect(added.maxDegradation).toBeCloseTo(0.7);
      const path = `${workloadsPath}/${added.id}`;
      const changed = await bounded.request('PUT', path, { body: { maxDegradation: 0.1 }, as: alice });
      expect((changed.json as Workload).maxDegradation).toBeCloseTo(0.7);
      const byOperator = await bounded.request('PUT', path, { body: { maxDegradation: 0.1 }, as: operator });
      expect(byOperator.json).toMatchObject({ maxDegradation: 0.1 });
    } finally {
      await bounded.close();
    }
  });

  test('are protected while a process of theirs is attested, or if an operator has registered them', async () => {
    await setNode(api.state, nodeRow([a100('GPU-0')]));
    const own = (await add({ name: 'own', device: 'GPU-0', maxDegradation: 0 })).json as Workload;
    const theirs = (await add({ name: 'theirs', device: 'GPU-0' }, operator)).json as Workload;
    expect(theirs).not.toHaveProperty('attested');
    expect(JSON.stringify(await listed(alice))).not.toMatch(/guard|tokenHash/);
    const table = new GpuTable(api.state, systemClock, createLogger({ level: 'silent' }));
    await table.open();
    const workloads = new GpuWorkloads({
      ...{ store: api.store, state: api.state, clock: systemClock, table },
      ...{ random: seededRandom(3), logger: createLogger({ level: 'silent' }) },
    });
    await workloads.open();
    const shown = (): string[] => workloads.shown.map(({ name }) => name).sort();
    const untilShown = async (...names: string[]): Promise<void> => {
      while (shown().join() !== names.join()) await new Promise((done) => setTimeout(done, 10));
    };
    try {
      await untilShown('theirs');
      const row = nodeRow([a100('GPU-0')]);
      row.status[0]!.processes = [{ pid: 9, memoryMiB: 100, workload: own.id }];
      await setNode(api.state, row);
      await untilShown('own', 'theirs');
      expect((await listed(alice)).map((one) => (one as { attested?: boolean }).attested)).toEqual([true]);
      await setNode(api.state, nodeRow([a100('GPU-0')]));
      await untilShown('theirs');
    } finally {
      await workloads.close();
      await table.close();
    }
  });

  test('that were found on a device are shown to operators, once each', async () => {
    const row = nodeRow([a100('GPU-0')]);
    row.status[0]!.processes = [
      { pid: 5, memoryMiB: 100 },
      { pid: 6, memoryMiB: 200, container: 'c1' },
      { pid: 7, memoryMiB: 300, workload: 'gone' },
    ];
    await setNode(api.state, row);
    await add({ name: 'known', device: 'GPU-0', pid: 5 });
    expect((await listed(operator)).map(({ name, origin, pid }) => [name, origin, pid])).toEqual([
      ['known', 'registered', 5],
      ['process 7', 'discovered', 7],
    ]);
    expect((await listed(alice)).map(({ name }) => name)).toEqual(['known']);
    expect((await api.request('DELETE', `${workloadsPath}/invoker0-7`, { as: operator })).status).toBe(404);
  });

  test.each<[string, unknown, number, RegExp]>([
    ['no name', {}, 400, /'name' must be given/],
    ['a name that is a number', { name: 1 }, 400, /'name' must be a text/],
    ['an unknown field', { name: 'a', gpu: 1 }, 400, /'gpu' is no field/],
    ['a process of no number', { name: 'a', pid: 'x' }, 400, /'pid' must be a whole number/],
    ['too large a share', { name: 'a', mpsPercent: 101 }, 400, /'mpsPercent'/],
    [
      'a degradation in percent',
      { name: 'a', maxDegradation: 5 },
      400,
      /'maxDegradation' must be a number from 0 to 1/,
    ],
    ['a start that is no boolean', { name: 'a', start: 'yes' }, 400, /'start'/],
    ['a list', [], 400, /JSON object expected/],
    ['a device that is not there', { name: 'a', device: 'GPU-9' }, 404, /There is no GPU GPU-9/],
  ])('with %s are refused', async (_, body, status, message) => {
    await setNode(api.state, nodeRow([a100('GPU-0')]));
    const reply = await add(body);
    expect([reply.status, errorOf(reply)]).toEqual([status, expect.stringMatching(message)]);
    expect(await listed(operator)).toEqual([]);
  });

  test('need a device, and are not without number', async () => {
    expect((await add({ name: 'a' })).status).toBe(503);
    await setNode(api.state, nodeRow([a100('GPU-0')]));
    for (let count = 0; count < 100; count++) expect((await add({ name: 'a' })).status).toBe(200);
    expect((await add({ name: 'a' })).status).toBe(429);
    expect((await add({ name: 'a' }, bob)).status).toBe(200);
  });
});
