// Rates that workloads report: baselines, degradation, staleness.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { gpuTable } from '@gpuwhisk/common/gpu';
import { workloadReportTable } from '@gpuwhisk/common/workload-reports';
import type { Resident, Workload } from '@gpuwhisk/common/gpu';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { SeenWorkloads } from '@gpuwhisk/controller/gpu/scheduler/seen-workloads';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { GpuWorkloads } from '@gpuwhisk/controller/gpu/state/gpu-workloads';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { bob, errorOf, operator, startApi } from './harness.js';
import type { Api, Reply, RequestOptions } from './harness.js';

const seenWorkloads = (list: readonly Workload[], at: number) => new SeenWorkloads(() => list).at(at);
const workloadsPath = '/api/v1/gpu/workloads';
type Shown = Workload & { degradation?: number; state?: string };

let now = 1_800_000_000_000;
const clock = { ...systemClock, now: () => now };
let api: Api;
let storeWrites = 0;
beforeAll(async () => {
  api = await startApi({
    clock,
    wrapStore: (store) =>
      new Proxy(store, {
        get: (target, name) => {
          if (name === 'put') storeWrites += 1;
          const member: unknown = Reflect.get(target, name);
          return typeof member === 'function' ? (member.bind(target) as unknown) : member;
        },
      }),
  });
});
afterAll(() => api.close());
beforeEach(async () => {
  for (const { id } of await listed()) await api.request('DELETE', `${workloadsPath}/${id}`, { as: operator });
  await api.state.deleteRow(gpuTable, 'invoker0');
  await setFunctions([]);
});

const listed = async (): Promise<Shown[]> => (await api.request('GET', workloadsPath)).json as Shown[];
const only = async (): Promise<Shown> => (await listed())[0]!;
const register = async (more: object = {}): Promise<string> => {
  const reply = await api.request('POST', workloadsPath, { body: { name: 'train', device: 'GPU-0', ...more } });
  expect(reply.status).toBe(200);
  return (reply.json as Workload).id;
};
const put = (id: string, body: unknown, options: RequestOptions = {}): Promise<Reply> =>
  api.request('PUT', `${workloadsPath}/${id}`, { body, ...options });

/** The agent's row: the functions on device GPU-0. */
const setFunctions = (residents: Resident[]): Promise<void> => setNode(api.state, nodeRow([a100('GPU-0')], residents));
const instance = (activations: string[], idleSince?: number): Resident => ({
  ...{ container: 'c1', action: '/alice/classify', namespace: 'alice', device: 'GPU-0', memoryMiB: 2048 },
  ...{ share: { shareClass: 30, smRequest: 0.3, smLimit: 0.3, memoryMiB: 2048 }, activations },
  ...(idleSince !== undefined && { idleSince }),
});

/** Reports these rates, one a second. */
async function report(id: string, ...rates: number[]): Promise<Shown> {
  for (const rate of rates) {
    now += 1000;
    const reply = await put(id, { rate });
    expect(reply.status).toBe(200);
  }
  return only();
}
const times = (count: number, rate: number): number[] => new Array<number>(count).fill(rate);

describe('the rate of a workload', () => {
  test('is shown with the declared baseline, the degradation and its bound', async () => {
    const id = await register({ baselineRate: 10, maxDegradation: 0.1 });
    expect(await only()).toMatchObject({ baselineRate: 10, baselineFrom: 'declared', maxDegradation: 0.1 });
    expect(await only()).not.toHaveProperty('state');
    expect(await report(id, 9.5)).toMatchObject({
      ...{ rate: 9.5, reportedAt: now, degradation: expect.closeTo(0.05), state: 'within-bound' },
    });
    expect(await report(id, 8)).toMatchObject({ degradation: expect.closeTo(0.2), state: 'beyond-bound' });
    expect((await put(id, { maxDegradation: 0.3 })).json).toMatchObject({ maxDegradation: 0.3, state: 'within-bound' });
    const devices = (await api.request('GET', '/api/v1/gpu/devices')).json;
    expect(devices).toMatchObject([{ workloads: [{ id, degradation: expect.closeTo(0.2), state: 'within-bound' }] }]);
  });

  test('counts as stale ten seconds after the last report, and never as within its bound then', async () => {
    const id = await register({ baselineRate: 10 });
    await report(id, 10);
    now += 10_000;
    expect(await only()).toMatchObject({ degradation: 0, state: 'within-bound' });
    now += 1;
    expect(await only()).toMatchObject({ rate: 10, state: 'stale' });
    expect(await only()).not.toHaveProperty('degradation');
    const [inView] = seenWorkloads(await listed(), now);
    expect(inView).toMatchObject({ tolerated: 0.05, baseline: 10, baselineFrom: 'declared', state: 'stale' });
    expect(inView).not.toHaveProperty('measured');
    expect(await report(id, 9)).toMatchObject({ degradation: expect.closeTo(0.1), state: 'beyond-bound' });
    expect(seenWorkloads(await listed(), now)).toMatchObject([{ rate: 9, measured: expect.closeTo(0.1) }]);
  });

  test('is no load for the store, and ends with the registration', async () => {
    const id = await register({ baselineRate: 10 });
    storeWrites = 0;
    await report(id, ...times(20, 9));
    expect(storeWrites).toBe(0);
    expect([...(await api.state.rows(workloadReportTable)).keys()]).toEqual([id]);
    await api.request('DELETE', `${workloadsPath}/${id}`);
    expect((await api.state.rows(workloadReportTable)).size).toBe(0);
    expect((await put(id, { rate: 9 })).status).toBe(404);
  });

  test('is known to every controller, which continue one series', async () => {
    const id = await register();
    const table = new GpuTable(api.state, clock, createLogger({ level: 'silent' }));
    await table.open();
    const other = new GpuWorkloads({
      ...{ store: api.store, state: api.state, clock, table },
      ...{ random: seededRandom(2), logger: createLogger({ level: 'silent' }) },
    });
    await other.open();
    await report(id, ...times(3, 10));
    expect(await other.list()).toMatchObject([{ id, rate: 10, reportedAt: now }]);
    for (let count = 0; count < 3; count++) {
      now += 1000;
      await other.report(id, 10);
    }
    expect(await only()).toMatchObject({ baselineRate: 10, baselineFrom: 'measured', reportedAt: now });
    await other.close();
    await table.close();
  });

  test("is the owner's and the operators' to report", async () => {
    const id = await register();
    expect((await put(id, { rate: 9 }, { as: bob })).status).toBe(404);
    expect((await put(id, { rate: 9 }, { as: operator })).status).toBe(200);
  });

  test.each([
    ['a rate of zero', { rate: 0 }, /'rate' must be a number from 1e-9 to 1000000000000, per second/],
    ['a negative rate', { rate: -1 }, /'rate' must be a number/],
    ['NaN as text', { rate: 'NaN' }, /'rate' must be a number/],
    ['a null', { rate: null }, /'rate' must be a number/],
    ['an infinite rate', '{"rate":1e999}', /'rate' must be a number/],
    ['an absurd rate', { rate: 1e13 }, /'rate' must be a number/],
    ['an absurd baseline', { baselineRate: 1e-12 }, /'baselineRate' must be a number/],
    ['a bound above 1', { maxDegradation: 1.5 }, /'maxDegradation' must be a number from 0 to 1/],
    ['a negative bound', { maxDegradation: -0.1 }, /'maxDegradation' must be a number from 0 to 1/],
    ['a stall that is no boolean', { rate: 1, stalled: 1 }, /'stalled' must be true or false, beside a 'rate'/],
    ['a stall without a rate', { stalled: true }, /'stalled' must be true or false, beside a 'rate'/],
    ['a field of the answer', { rate: 1, degradation: 0 }, /'degradation' is no field of a workload/],
  ])('is not taken from %s', async (_, body, message) => {
    const id = await register({ baselineRate: 10 });
    const reply = await put(id, body);
    expect([reply.status, errorOf(reply)]).toEqual([400, expect.stringMatching(message)]);
    expect(await only()).not.toHaveProperty('rate');
  });
});

test('a workload that does not report has an estimated degradation while functions run beside it', async () => {
  const id = await register({ baselineRate: 10 });
  expect(await only()).not.toHaveProperty('estimatedDegradation');
  await setFunctions([instance(['activation'])]);
  expect(await only()).toMatchObject({ estimatedDegradation: 0.5, estimatedFrom: 'shares' });
  expect(seenWorkloads(await listed(), now)).toMatchObject([{ estimated: 0.5 }]);
  const reported = await report(id, 9);
  expect(reported).toMatchObject({ degradation: expect.closeTo(0.1) });
  expect(reported).not.toHaveProperty('estimatedDegradation');
  now += 11_000;
  expect(await only()).toMatchObject({ state: 'stale', estimatedDegradation: 0.5 });
});

describe('the baseline of a workload', () => {
  test('that declares none is the median of its last reports while no function runs on the device', async () => {
    const id = await register();
    expect(await report(id, ...times(5, 10))).toMatchObject({ state: 'no-baseline' });
    // The first report has no time before it in which no function ran.
    expect(await report(id, 10)).toMatchObject({
      ...{ baselineRate: 10, baselineFrom: 'measured', aloneRate: 10, state: 'within-bound' },
    });
    // It follows a workload that becomes slower by itself, but no single slow step.
    expect(await report(id, 1, ...times(3, 10))).toMatchObject({ baselineRate: 10 });
    expect(await report(id, ...times(30, 8))).toMatchObject({ baselineRate: 8, baselineFrom: 'measured' });
  });

  test('is not measured beside functions', async () => {
    const id = await register();
    await report(id, 10);
    await setFunctions([instance(['activation'])]);
    expect(await report(id, ...times(10, 6))).not.toHaveProperty('baselineRate');
    // The report after the end of a run still covers a part of it.
    await setFunctions([instance([], now + 500)]);
    expect(await report(id, ...times(5, 10))).not.toHaveProperty('baselineRate');
    expect(await report(id, 10)).toMatchObject({ baselineRate: 10 });
    await setFunctions([instance(['activation'])]);
    expect(await report(id, ...times(20, 6))).toMatchObject({ baselineRate: 10, degradation: expect.closeTo(0.4) });
  });

  test('is not measured beside runs that began and ended between two rows of the agent', async () => {
    const id = await register();
    await report(id, 10);
    for (let second = 0; second < 10; second++) {
      await setFunctions([instance([], now + 500)]);
      await report(id, 6);
    }
    expect(await only()).not.toHaveProperty('baselineRate');
  });

  test('is not measured from a step that began beside a function', async () => {
    const id = await register();
    await report(id, 0.1);
    await setFunctions([instance([], now)]);
    // Steps of ten seconds, of which the rate is reported every second.
    expect(await report(id, ...times(10, 0.1))).not.toHaveProperty('baselineRate');
    expect(await report(id, ...times(5, 0.1))).toMatchObject({ baselineRate: 0.1 });
  });

  test('is not measured from rates that a step can only still reach', async () => {
    const id = await register();
    await report(id, ...times(6, 10));
    for (let second = 1; second <= 60; second++) {
      now += 1000;
      await put(id, { rate: 1 / second, stalled: true });
    }
    expect(await only()).toMatchObject({ baselineRate: 10, state: 'beyond-bound' });
    expect(await report(id, 1 / 60, 10)).toMatchObject({ baselineRate: 10, state: 'within-bound' });
  });

  test('is not measured while the agent is silent', async () => {
    const id = await register();
    await report(id, 10);
    await api.state.deleteRow(gpuTable, 'invoker0');
    expect(await report(id, ...times(10, 10))).not.toHaveProperty('baselineRate');
  });

  test('is not measured from a burst of reports', async () => {
    const id = await register();
    await report(id, 10);
    for (let count = 0; count < 20; count++) {
      now += 1;
      await put(id, { rate: 500 });
    }
    expect(await only()).not.toHaveProperty('baselineRate');
  });

  test('that is declared stays, unless the rate is far above it for half a minute', async () => {
    const id = await register({ baselineRate: 5 });
    expect(await report(id, ...times(29, 10))).toMatchObject({ baselineRate: 5, baselineFrom: 'declared' });
    const raised = await report(id, 10);
    expect(raised).toMatchObject({ baselineRate: 10, baselineFrom: 'measured', declaredBaselineRate: 5 });
    expect(raised).toMatchObject({ degradation: 0 });
    expect(await report(id, 6)).toMatchObject({ degradation: expect.closeTo(0.4), state: 'beyond-bound' });
    // A new declaration counts again.
    expect((await put(id, { baselineRate: 8 })).json).toMatchObject({ baselineRate: 8, baselineFrom: 'declared' });
    expect(await only()).not.toHaveProperty('declaredBaselineRate');
  });

  test('that is declared is raised beside functions, too, and is not lowered', async () => {
    const id = await register({ baselineRate: 5 });
    await setFunctions([instance(['activation'])]);
    expect(await report(id, ...times(30, 7))).toMatchObject({ baselineRate: 7, declaredBaselineRate: 5 });
    await put(id, { baselineRate: 100 });
    await setFunctions([]);
    const alone = await report(id, ...times(40, 7));
    expect(alone).toMatchObject({ baselineRate: 100, baselineFrom: 'declared', aloneRate: 7, state: 'beyond-bound' });
  });

  test('that was measured survives a restart, and then the rate is unknown', async () => {
    const id = await register();
    await report(id, ...times(6, 10));
    const state = embeddedState(clock);
    const restarted = new GpuWorkloads({
      ...{ store: api.store, state, clock, table: new GpuTable(state, clock, createLogger({ level: 'silent' })) },
      ...{ random: seededRandom(2), logger: createLogger({ level: 'silent' }) },
    });
    await restarted.open();
    const [shown] = await restarted.list();
    expect(shown).toMatchObject({ id, baselineRate: 10, baselineFrom: 'measured' });
    expect(shown).not.toHaveProperty('rate');
    expect(seenWorkloads([shown!], now)[0]).not.toHaveProperty('state');
    await restarted.close();
  });
});
