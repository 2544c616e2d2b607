// Nodes, notices and costs through the API.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { gpuTable } from '@gpuwhisk/common/gpu';
import { gpuNoticeTable, gpuUseTable } from '@gpuwhisk/common/gpu-nodes';
import type { NodeUse } from '@gpuwhisk/common/gpu-nodes';
import type { JsonValue } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { CostLedger, dayOf } from '@gpuwhisk/controller/gpu/cost/cost-ledger';
import type { Machine } from '@gpuwhisk/controller/gpu/procure/machines';
import { epochMs, SimulatedClock } from '../simulation/simulated-clock.js';
import { a100, nodeRow, setNode } from './gpu-nodes.js';
import { alice, bob, errorOf, operator, startApi } from './harness.js';
import type { Account, Api, Reply } from './harness.js';

const machines: Machine[] = [
  { id: 'gw-1', market: 'spot', askedAt: 0, state: 'rented', machine: 'vm-1', pricePerHour: 10, node: 'invoker0' },
  { id: 'gw-2', market: 'on-demand', askedAt: 0, state: 'rented' },
];
let wanted = 2;
const clock = new SimulatedClock();
const logger = createLogger({ level: 'silent' });
const state = embeddedState(clock);
const store = simulatedStore({ clock, random: seededRandom(1), latencyMs: 0 });
const lease: { epoch: number | undefined } = { epoch: 1 };
const ledgerOf = (): CostLedger => new CostLedger({ store, state, lease, clock, logger, metrics: createMetrics() });
const ledger = ledgerOf();
let api: Api;

beforeAll(async () => {
  api = await startApi({
    costLedger: { between: (from, to) => clock.runUntil(ledger.between(from, to)) },
    clock: Object.assign(new SimulatedClock(), { now: () => clock.now() }),
    procurement: {
      list: () => Promise.resolve(machines),
      wantedNodes: () => Promise.resolve(wanted),
      setWanted: (nodes) => Promise.resolve(void (wanted = nodes)),
    },
  });
});
afterAll(() => api.close());
const ask = (method: string, path: string, body?: unknown, as: Account = operator): Promise<Reply> =>
  api.request(method, `/api/v1/gpu/${path}`, { as, ...(body !== undefined && { body }) });

describe('nodes', () => {
  beforeEach(async () => {
    await api.state.deleteRow(gpuTable, 'invoker0');
    const labels = { machine: 'gw-1', zone: 'a' };
    await setNode(api.state, nodeRow([a100('GPU-0')], [], { labels, market: 'spot', pricePerHour: 9 }));
  });

  test('are shown to operators with their machines, and machines that do not report', async () => {
    expect((await ask('GET', 'nodes')).json).toEqual({
      wanted: 2,
      nodes: [
        {
          ...{ invoker: 'invoker0', state: 'ready', labels: { machine: 'gw-1', zone: 'a' }, market: 'spot' },
          ...{ pricePerHour: 10, machine: 'vm-1', devices: ['GPU-0'], running: 0 },
        },
        { state: 'booting', labels: {}, market: 'on-demand', machine: 'gw-2', devices: [], running: 0 },
      ],
    });
    expect((await ask('GET', 'nodes', undefined, alice)).status).toBe(403);
  });

  test('get a notice, which can be withdrawn', async () => {
    const reply = await ask('PUT', 'nodes/invoker0/notice', { inS: 120 });
    const leavesAt = clock.now() + 120_000;
    expect([reply.status, reply.json]).toEqual([
      200,
      { invoker: 'invoker0', why: 'revoked', at: clock.now(), leavesAt },
    ]);
    expect((await api.state.rows(gpuNoticeTable)).get('invoker0')).toMatchObject({ leavesAt });
    expect((await ask('GET', 'nodes')).json).toMatchObject({
      nodes: [{ state: 'leaving', why: 'revoked', leavesAt }, {}],
    });
    expect((await ask('DELETE', 'nodes/invoker0/notice')).status).toBe(200);
    expect((await api.state.rows(gpuNoticeTable)).size).toBe(0);
  });

  test('bad requests are refused with the field', async () => {
    expect((await ask('PUT', 'nodes/invoker9/notice', { inS: 1 })).status).toBe(404);
    for (const body of [{}, { inS: -1 }, { inS: 1.5 }, { inS: '1' }, { inS: 1, more: 1 }, []]) {
      const reply = await ask('PUT', 'nodes/invoker0/notice', body);
      expect([reply.status, errorOf(reply)]).toEqual([400, expect.stringContaining("'inS'")]);
    }
    expect((await ask('PUT', 'nodes', { wanted: 10_001 })).status).toBe(400);
    expect((await ask('PUT', 'nodes', { wanted: 1 }, alice)).status).toBe(403);
    expect((await ask('PUT', 'nodes', { wanted: 5 })).json).toEqual({ wanted: 5 });
    expect(wanted).toBe(5);
  });
});

describe('costs', () => {
  const hourMs = 3_600_000;
  const today = dayOf(epochMs);
  const tell = (changes: Partial<NodeUse>): Promise<void> => {
    const use: NodeUse = {
      start: 's',
      at: 0,
      upMs: hourMs,
      devices: 1,
      market: 'spot',
      pricePerHour: 9,
      used: [],
      ...changes,
    };
    return state.setRow(gpuUseTable, 'invoker0', use as unknown as JsonValue);
  };
  beforeAll(async () => {
    ledger.open((invoker) => (invoker === 'invoker0' ? 10 : undefined));
    await tell({
      used: [
        ['alice', '/alice/f', hourMs / 2],
        ['bob', '/alice/f', hourMs / 4],
      ],
    });
    ledger.booted('spot', 10, hourMs / 10);
    await clock.runFor(6000);
  });
  const f = (namespace: string, gpuSeconds: number, cost: number): object => ({
    namespace,
    action: '/alice/f',
    gpuSeconds,
    cost,
  });

  test('are charged to functions; operators see all, with idle and boot apart, a namespace its own', async () => {
    const span = { from: dayOf(epochMs - 29 * 86_400_000), to: today };
    expect((await ask('GET', 'cost')).json).toEqual({
      ...{ ...span, functions: [f('alice', 1800, 5), f('bob', 900, 2.5)] },
      markets: [{ market: 'spot', hours: 1.1, cost: 11, idle: 2.5, boot: 1 }],
      ...{ idle: 2.5, boot: 1, total: 11 },
    });
    expect((await ask('GET', 'cost', undefined, bob)).json).toEqual({
      ...span,
      functions: [f('bob', 900, 2.5)],
      total: 2.5,
    });
  });

  test('come as CSV', async () => {
    const reply = await ask('GET', 'cost?format=csv&days=1');
    expect(reply.headers['content-type']).toBe('text/csv; charset=UTF-8');
    expect(reply.text).toBe(
      'namespace,action,gpuSeconds,cost\r\nalice,/alice/f,1800,5\r\nbob,/alice/f,900,2.5\r\n,(idle),,2.5\r\n,(boot),,1\r\n',
    );
    const own = await ask('GET', 'cost?format=csv', undefined, bob);
    expect(own.text).toBe('namespace,action,gpuSeconds,cost\r\nbob,/alice/f,900,2.5\r\n');
    for (const query of ['days=0', 'days=401', 'days=x', 'format=xml']) {
      expect((await ask('GET', `cost?${query}`)).status).toBe(400);
    }
  });

  test('are charged once, whichever controller leads', async () => {
    lease.epoch = undefined;
    await clock.runFor(6000);
    const other = ledgerOf();
    lease.epoch = 2;
    other.open(() => 10);
    await clock.runFor(6000);
    await tell({
      upMs: 2 * hourMs,
      used: [
        ['alice', '/alice/f', hourMs],
        ['bob', '/alice/f', hourMs / 4],
      ],
    });
    await clock.runFor(6000);
    await clock.runUntil(other.close());
    const { functions, markets } = await clock.runUntil(other.between(today, today));
    expect([...functions.values()].map(({ cost }) => cost)).toEqual([10, 2.5]);
    expect(markets.get('spot')?.cost).toBe(21);
  });
});
