import { expect, test } from '@jest/globals';
import type { MachineState, NodeState, ProcurementState } from '../../view/view.js';
import type { Procure } from '../../stages/procure/procure.js';
import { proteanProcurement, proteanProcurementDefaults } from './procure.js';
import { hasSpot, isRevoked } from '../../stages/procure/spot-market.js';

const at = 1_000_000;
const up = (id: string, market: MachineState['market'], changes: Partial<MachineState> = {}): MachineState => ({
  ...{ id, market, state: 'up', node: `node-${id}` },
  ...changes,
});
const viewOf = (procurement: Partial<ProcurementState>, nodes: NodeState[] = []): Parameters<Procure>[0] => ({
  ...{ at, nodes },
  procurement: { wanted: 2, machines: [], prices: {}, refusedAt: {}, ...procurement },
});
const decide = (view: Parameters<Procure>[0], settings: Partial<typeof proteanProcurementDefaults> = {}): string[] =>
  proteanProcurement({ ...proteanProcurementDefaults, ...settings })(view).map((action) =>
    action.kind === 'acquire' ? `acquire ${action.market}` : `give back ${action.node}`,
  );

test('missing nodes are rented as spot machines, on demand where there are none or they cost no less', () => {
  expect(decide(viewOf({}))).toEqual(['acquire spot', 'acquire spot']);
  expect(decide(viewOf({ refusedAt: { spot: at - 1 } }))).toEqual(['acquire on-demand', 'acquire on-demand']);
  expect(decide(viewOf({ prices: { spot: 40, 'on-demand': 30 } }))).toEqual(['acquire on-demand', 'acquire on-demand']);
  expect(decide(viewOf({ refusedAt: { spot: at - 1, 'on-demand': at - 1 } }))).toEqual([]);
  expect(decide(viewOf({ refusedAt: { spot: at - 30_000 } }))).toEqual(['acquire spot', 'acquire spot']);
});

test('machines that are asked for or boot, and rented nodes of others, are not asked for again', () => {
  const machines = [up('a', 'spot', { state: 'asked' }), up('b', 'spot', { state: 'booting' })];
  expect(decide(viewOf({ machines }))).toEqual([]);
  const nodes: NodeState[] = [
    { id: 'own', labels: {} },
    { id: 'rented', labels: {}, market: 'on-demand' },
    { id: 'node-a', labels: {}, market: 'spot' },
  ];
  expect(decide(viewOf({ machines: [up('a', 'spot')] }, nodes))).toEqual([]);
});

test('a node with a notice is replaced at once, also with a notice of no time, and one that is lost', () => {
  const [a, b] = [up('a', 'spot'), up('b', 'spot')];
  for (const leavesAt of [at + 120_000, at, at - 5000]) {
    expect(decide(viewOf({ machines: [{ ...a, leavesAt }, b] }))).toEqual(['acquire spot']);
    const nodes: NodeState[] = [{ id: 'node-a', labels: {}, market: 'spot', leavesAt }];
    expect(decide(viewOf({ machines: [a, b] }, nodes))).toEqual(['acquire spot']);
  }
  expect(decide(viewOf({ machines: [{ ...a, state: 'lost' }, b] }))).toEqual(['acquire spot']);
  expect(decide(viewOf({ machines: [{ ...a, state: 'leaving' }, b] }))).toEqual(['acquire spot']);
});

test('a machine on demand gives way to a spot machine once that one serves', () => {
  const [spot, demand] = [up('a', 'spot'), up('b', 'on-demand')];
  expect(decide(viewOf({ machines: [spot, demand] }))).toEqual(['acquire spot']);
  expect(decide(viewOf({ machines: [spot, demand], refusedAt: { spot: at - 1 } }))).toEqual([]);
  expect(decide(viewOf({ machines: [spot, demand, up('c', 'spot', { state: 'booting' })] }))).toEqual([]);
  expect(decide(viewOf({ machines: [spot, demand, up('c', 'spot')] }))).toEqual(['give back node-b']);
});

test('nodes to spare are given back, the dearest first', () => {
  const machines = [up('a', 'spot', { pricePerHour: 1 }), up('b', 'spot', { pricePerHour: 3 }), up('c', 'on-demand')];
  expect(decide(viewOf({ wanted: 1, machines }))).toEqual(['give back node-c', 'give back node-b']);
  expect(decide(viewOf({ wanted: 0, machines })).length).toBe(3);
});

test('one market alone is used where the other one is excluded', () => {
  const onDemand = { useSpot: 0 };
  expect(decide(viewOf({}), onDemand)).toEqual(['acquire on-demand', 'acquire on-demand']);
  expect(decide(viewOf({ machines: [up('a', 'on-demand'), up('b', 'on-demand')] }), onDemand)).toEqual([]);
  const spotOnly = { useOnDemand: 0 };
  expect(decide(viewOf({ refusedAt: { spot: at - 1 } }), spotOnly)).toEqual([]);
  expect(decide(viewOf({ prices: { spot: 40, 'on-demand': 30 } }), spotOnly)).toEqual(['acquire spot', 'acquire spot']);
  expect(() => decide(viewOf({}), { useSpot: 0, useOnDemand: 0 })).toThrow(RangeError);
});

test('spot machines that are taken away before they have served long are not rented for a while', () => {
  const decideAt = proteanProcurement(proteanProcurementDefaults);
  const prices = { spot: 10, 'on-demand': 30 };
  const askedAt = (now: number, machines: MachineState[]): string[] =>
    decideAt({ ...viewOf({ wanted: 1, machines, prices }), at: now }).map((action) =>
      action.kind === 'acquire' ? action.market : 'back',
    );
  // Each boots for two minutes and is gone.
  let now = at;
  let wanted = askedAt(now, []);
  for (let life = 0; life < 20 && wanted[0] === 'spot'; life += 1) {
    askedAt(now, [up(`s${life}`, 'spot', { state: 'booting' })]);
    now += 120_000;
    wanted = askedAt(now, []);
  }
  expect(wanted).toEqual(['on-demand']);
  // Four half-lives later they are trusted again.
  for (const end = now + 24 * 3_600_000; now < end; now += 60_000) wanted = askedAt(now, [up('d', 'on-demand')]);
  expect(wanted).toEqual(['spot']);
});

test('a clock that was set back does not keep a market from being asked, and without a provider nothing is rented', () => {
  expect(decide(viewOf({ refusedAt: { spot: at + 3_600_000 } }))).toEqual(['acquire spot', 'acquire spot']);
  expect(decide({ at })).toEqual([]);
});

test('draws of the spot market have their probability, and depend on the seed only', () => {
  const draws = (revocation: number, seed: number): boolean[] =>
    Array.from({ length: 2000 }, (_, at) => isRevoked({ seed, revocation }, `m${at % 7}`, at));
  for (const revocation of [0, 0.354, 0.708]) {
    const drawn = draws(revocation, 1);
    expect(Math.abs(drawn.filter(Boolean).length / 2000 - revocation)).toBeLessThan(0.04);
    const refused = Array.from({ length: 2000 }, (_, at) => !hasSpot({ seed: 1, revocation }, at));
    expect(Math.abs(refused.filter(Boolean).length / 2000 - revocation)).toBeLessThan(0.04);
  }
  expect(draws(0.354, 1)).toEqual(draws(0.354, 1));
  expect(draws(0.354, 1)).not.toEqual(draws(0.354, 2));
});
