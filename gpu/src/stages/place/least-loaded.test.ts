import { describe, expect, test } from '@jest/globals';
import type { Device, DeviceMode, DeviceStatus, NodeStatus, Resident, Share } from '@gpuwhisk/common/gpu';
import { Ledger } from '../../ledger/ledger.js';
import * as leastLoaded from './least-loaded.js';
import type { PlacementChoice, PlacementRequest } from '../../ledger/account.js';
import type { Reservation } from '../../ledger/occupancy.js';
import { capacityProblem } from '../geometry/capacity.js';

const shareOf = (percent: 10 | 20 | 50 | 100, memoryMiB: number): Share => ({
  shareClass: percent,
  smRequest: percent / 100,
  smLimit: percent / 100,
  memoryMiB,
});

function device(uuid: string, mode: DeviceMode = 'mps', changes: Partial<Device> = {}): Device {
  const common = { index: 0, name: 'NVIDIA A100-SXM4-40GB', type: 'a100-40', smCount: 108, memoryMiB: 40_000 };
  return { uuid, ...common, mode, slices: [], simulated: true, ...changes };
}

const status = (uuid: string, changes: Partial<DeviceStatus> = {}): DeviceStatus => ({
  ...{ uuid, at: 0, usedMemoryMiB: 0, processes: [] },
  health: { state: 'healthy', reasons: [] },
  ...changes,
});

function node(devices: Device[], residents: Resident[] = [], changes: Partial<NodeStatus> = {}): NodeStatus {
  const all = devices.map(({ uuid }) => status(uuid));
  return { invoker: 'invoker0', version: 7, at: 0, devices, status: all, residents, ...changes };
}

const resident = (container: string, on: string, changes: Partial<Resident> = {}): Resident => ({
  ...{ container, device: on, share: shareOf(20, 1000), memoryMiB: 1000 },
  ...{ action: '/alice/other', namespace: 'alice', isolation: 'namespace', activations: ['running'] },
  ...changes,
});

const request = ({ share = shareOf(20, 1000), ...changes }: Partial<PlacementRequest> = {}): PlacementRequest => ({
  ...{ action: '/alice/a', namespace: 'alice', gpus: 1, isolation: 'namespace', isBounded: false, batch: 1 },
  ...{ share, memoryMiB: share.memoryMiB },
  ...changes,
});

const reservation = (on: string, changes: Partial<Reservation> = {}): Reservation => ({
  ...{ activationId: 'given', action: '/alice/a', namespace: 'alice', isolation: 'namespace', ended: false },
  placement: { invoker: 'invoker0', devices: [on], share: shareOf(50, 20_000), at: 0, epoch: 1, version: 7 },
  ...changes,
});

interface PlacementView {
  nodes: NodeStatus[];
  reservations: Reservation[];
  kept: ReadonlySet<string>;
  allowed?: ReadonlySet<string>;
}

const view = (nodes: NodeStatus[], changes: Partial<PlacementView> = {}): PlacementView => ({
  ...{ nodes, reservations: [], kept: new Set<string>() },
  ...changes,
});

function ledgerOf({ nodes, reservations }: Pick<PlacementView, 'nodes' | 'reservations'>): Ledger {
  const ledger = new Ledger();
  for (const one of nodes) ledger.heard(one, 0);
  for (const one of reservations) ledger.hold({ ...one }, Infinity);
  return ledger;
}

const isOpen = (): boolean => true;

function placeLeastLoaded({ kept, allowed, ...there }: PlacementView, asked: PlacementRequest): PlacementChoice {
  const limits = { kept, isOpen, ...(allowed && { allowed }) };
  return leastLoaded.placeLeastLoaded(ledgerOf(there), asked, limits, { epoch: 3, at: 99 });
}

const placesToKeep = ({ kept, ...there }: PlacementView, asked: PlacementRequest): string[] =>
  leastLoaded.placesToKeep(ledgerOf(there), asked, { kept, isOpen });

/** What a place was not taken for. */
const why = ({ rejected }: PlacementChoice, what: string): string | undefined =>
  rejected.find((one) => one.what === what)?.reason;

describe('the least loaded place', () => {
  test('takes the device with the least share given away, and says why not the other', () => {
    const busy = node([device('G0'), device('G1')], [resident('c', 'G0')]);
    const choice = placeLeastLoaded(view([busy]), request());
    expect(choice.placement).toEqual({
      ...{
        invoker: 'invoker0',
        devices: ['G1'],
        share: shareOf(20, 1000),
        simulated: true,
        at: 99,
        epoch: 3,
        version: 7,
      },
    });
    expect(choice.rejected).toEqual([
      {
        ...{ what: 'G0', reason: 'more of its SMs are given away than of the chosen one' },
        numbers: { load: 0.2, chosenLoad: 0 },
      },
    ]);
  });

  test('spreads over nodes, and takes the roomier of two that are loaded alike', () => {
    const small = node([device('G0', 'mps', { memoryMiB: 10_000 })]);
    const large = node([device('G1')], [], { invoker: 'invoker1' });
    expect(placeLeastLoaded(view([small, large]), request()).placement).toMatchObject({
      ...{ invoker: 'invoker1', devices: ['G1'] },
    });
  });

  test('leaves a twentieth of the memory alone, and tells what is lacking', () => {
    const one = node([device('G0')]);
    expect(placeLeastLoaded(view([one]), request({ share: shareOf(20, 38_000) })).placement).toBeDefined();
    const choice = placeLeastLoaded(view([one]), request({ share: shareOf(20, 38_001) }));
    expect(choice.placement).toBeUndefined();
    expect(choice.rejected).toEqual([
      { what: 'G0', reason: 'too small', numbers: { capacityMiB: 38_000, needMiB: 38_001 } },
    ]);
  });

  test('counts what was given out and not shown yet', () => {
    const one = node([device('G0')]);
    const given = view([one], { reservations: [reservation('G0')] });
    const choice = placeLeastLoaded(given, request({ share: shareOf(20, 20_000) }));
    expect(choice.rejected).toEqual([
      { what: 'G0', reason: 'too little free memory', numbers: { availableMiB: 18_000, needMiB: 20_000 } },
    ]);
  });

  test('counts it once when the agent shows it', () => {
    const shown = node([device('G0')], [resident('c', 'G0', { activations: ['given'], memoryMiB: 20_000 })]);
    const given = view([shown], { reservations: [reservation('G0')] });
    expect(placeLeastLoaded(given, request({ share: shareOf(20, 18_000) })).placement).toBeDefined();
    expect(placeLeastLoaded(given, request({ share: shareOf(20, 18_001) })).placement).toBeUndefined();
  });

  test('counts processes of others, and memory that no process accounts for', () => {
    const training = { pid: 1, memoryMiB: 30_000 };
    const ours = { pid: 2, memoryMiB: 900, container: 'c' };
    const busy = node([device('G0')], [], { status: [status('G0', { processes: [training, ours] })] });
    expect(placeLeastLoaded(view([busy]), request({ share: shareOf(20, 8001) })).placement).toBeUndefined();
    expect(placeLeastLoaded(view([busy]), request({ share: shareOf(20, 8000) })).placement).toBeDefined();
    const leaking = node([device('G0')], [resident('c', 'G0')], {
      status: [status('G0', { usedMemoryMiB: 11_000 })],
    });
    const choice = placeLeastLoaded(view([leaking]), request({ share: shareOf(20, 27_001) }));
    expect(choice.rejected[0]).toMatchObject({ numbers: { availableMiB: 27_000 } });
  });

  test('has one whose share is bounded run only where it is held to it, and kept nothing elsewhere', () => {
    const modes = [device('G0', 'timeslice'), device('G1', 'exclusive')];
    const bounded = request({ isBounded: true });
    const choice = placeLeastLoaded(view([node(modes)]), bounded);
    expect([choice.placement, why(choice, 'G0'), why(choice, 'G1')]).toEqual([
      undefined,
      ...Array<string>(2).fill('nothing holds it to the share that its namespace may have'),
    ]);
    expect(placesToKeep(view([node(modes)]), bounded)).toEqual([]);
    expect(capacityProblem([node(modes)], { memoryMiB: 1, gpus: 1, maxShareClass: 50 })).toBe(
      'the namespace may have 50 % of a device, and none holds functions to a share',
    );
    const nodes = [node([...modes, device('G2', 'mps')])];
    expect(placeLeastLoaded(view(nodes), bounded).placement?.devices).toEqual(['G2']);
    expect(placesToKeep(view(nodes), bounded)).toEqual(['G2']);
    expect(capacityProblem(nodes, { memoryMiB: 1, gpus: 1, maxShareClass: 50 })).toBeUndefined();
  });

  test('prefers an instance that idles, unless the SMs are given away there', () => {
    const idle = resident('warm', 'G0', { action: '/alice/a', activations: [] });
    const half = resident('c', 'G0', { share: shareOf(50, 1000) });
    const choice = placeLeastLoaded(view([node([device('G0'), device('G1')], [idle, half])]), request());
    expect([choice.placement?.devices, choice.reuses]).toEqual([['G0'], 'warm']);
    const full = resident('c', 'G0', { share: shareOf(100, 1000) });
    const other = placeLeastLoaded(view([node([device('G0'), device('G1')], [idle, full])]), request());
    expect([other.placement?.devices, other.reuses]).toEqual([['G1'], undefined]);
  });

  test('gives an instance that idles to one allowed, until its run is over', () => {
    const idle = resident('warm', 'G0', { action: '/alice/a', activations: [] });
    const one = node([device('G0')], [idle]);
    const taken = (ended: boolean): PlacementView =>
      view([one], { reservations: [reservation('G0', { reuses: 'warm', ended })] });
    expect(placeLeastLoaded(taken(false), request()).reuses).toBeUndefined();
    expect(placeLeastLoaded(taken(true), request()).reuses).toBe('warm');
  });

  test('an instance that still seems to run and has ended is free', () => {
    const late = resident('warm', 'G0', { action: '/alice/a', activations: ['given'] });
    const ended = view([node([device('G0')], [late])], { reservations: [reservation('G0', { ended: true })] });
    expect(placeLeastLoaded(ended, request()).reuses).toBe('warm');
  });

  test('an instance of another share, of too little memory or of another namespace is no use', () => {
    for (const changes of [{ share: shareOf(50, 1000) }, { memoryMiB: 999 }, { namespace: 'bob' }]) {
      const idle = resident('warm', 'G0', { action: '/alice/a', activations: [], isolation: 'shared', ...changes });
      const choice = placeLeastLoaded(view([node([device('G0')], [idle])]), request({ isolation: 'shared' }));
      expect([choice.placement?.devices, choice.reuses]).toEqual([['G0'], undefined]);
    }
  });

  test('requests of a batch join an instance, while a second batch gathers, and need no memory of their own', () => {
    const large = shareOf(20, 30_000);
    const users = (count: number): string[] => Array.from({ length: count }, (_, at) => `user ${at}`);
    const running = (count: number, reservations: Reservation[] = []): PlacementView => {
      const busy = { action: '/alice/a', share: large, memoryMiB: 30_000, activations: users(count) };
      return view([node([device('G0')], [resident('c', 'G0', busy)])], { reservations });
    };
    const ask = request({ batch: 2, share: large });
    expect(placeLeastLoaded(running(1), ask)).toMatchObject({ reuses: 'c', placement: { joins: true } });
    expect(placeLeastLoaded(running(3), ask).reuses).toBe('c');
    expect(placeLeastLoaded(running(4), ask).placement).toBeUndefined();
    const coming = reservation('G0', { reuses: 'c', activationId: 'coming' });
    expect(placeLeastLoaded(running(3, [coming]), ask).placement).toBeUndefined();
    const shown = reservation('G0', { reuses: 'c', activationId: 'user 0' });
    expect(placeLeastLoaded(running(3, [shown]), ask).reuses).toBe('c');
    expect(placeLeastLoaded(running(1), request({ share: large })).placement).toBeUndefined();
  });

  test('requests of another subject join no batch, and what idles of it goes for them', () => {
    const large = shareOf(20, 30_000);
    const instance = (activations: string[]): NodeStatus => {
      const its = { action: '/alice/a', subject: 'ann', share: large, memoryMiB: 30_000, activations };
      return node([device('G0')], [resident('c', 'G0', its)]);
    };
    const ask = (subject: string): PlacementRequest => request({ batch: 2, share: large, subject });
    expect(placeLeastLoaded(view([instance(['one'])]), ask('ann'))).toMatchObject({ reuses: 'c' });
    expect(placeLeastLoaded(view([instance(['one'])]), ask('bob')).placement).toBeUndefined();
    expect(placeLeastLoaded(view([instance([])]), ask('bob')).placement).toMatchObject({ reclaim: ['c'] });
    const given = reservation('G0', {
      subject: 'ann',
      placement: placeLeastLoaded(view([instance([])]), ask('ann')).placement!,
    });
    const promised = view([node([device('G0')])], { reservations: [given] });
    expect(placeLeastLoaded(promised, ask('ann'))).toMatchObject({ reuses: 'given', placement: { joins: true } });
    expect(placeLeastLoaded(promised, ask('bob')).placement).toBeUndefined();
  });

  test('requests of a batch join an instance that is yet to be made, and follow it into its container', () => {
    const large = shareOf(20, 30_000);
    const ask = request({ batch: 8, share: large });
    const place = { invoker: 'invoker0', devices: ['G0'], share: large, at: 0, epoch: 1, version: 7 };
    const first = reservation('G0', { activationId: 'first', placement: place });
    const empty = node([device('G0')]);
    expect(placeLeastLoaded(view([empty], { reservations: [first] }), ask)).toMatchObject({
      ...{ reuses: 'first', placement: { joins: true } },
    });
    const second = reservation('G0', { activationId: 'second', placement: place, reuses: 'first' });
    const made = { action: '/alice/a', share: large, memoryMiB: 30_000, activations: ['first'] };
    const row = node([device('G0')], [resident('c', 'G0', made)]);
    const ledger = ledgerOf({ nodes: [row], reservations: [first, second] });
    ledger.heard(row, 1);
    expect(Array.from(ledger.heldOn('G0'), ({ reuses }) => reuses)).toEqual([undefined, 'c']);
    ledger.end('first');
    ledger.heard(node([device('G0')], [resident('c', 'G0', { ...made, activations: [] })]), 2);
    expect(ledger.account('G0')?.occupants.map(({ id, users }) => [id, users])).toEqual([['c', 1]]);
  });

  test('names what idles and has to go, pre-warmers first and no more than needed', () => {
    const idle = { activations: [], memoryMiB: 15_000 };
    const prewarmer: Resident = {
      container: 'p',
      device: 'G0',
      share: shareOf(20, 500),
      memoryMiB: 500,
      activations: [],
    };
    const full = node([device('G0')], [resident('a', 'G0', idle), resident('b', 'G0', idle), prewarmer]);
    const reclaimed = (memoryMiB: number): unknown =>
      placeLeastLoaded(view([full]), request({ share: shareOf(20, memoryMiB) })).placement?.reclaim;
    expect(reclaimed(7500)).toBeUndefined();
    expect(reclaimed(8000)).toEqual(['p']);
    expect(reclaimed(8001)).toEqual(['p', 'a']);
    expect(reclaimed(38_000)).toEqual(['p', 'a', 'b']);
  });

  test('names first what saves the least time of loading for its memory, once that was measured', () => {
    const idle = (container: string, memoryMiB: number, loadMs: number): Resident =>
      resident(container, 'G0', { activations: [], memoryMiB, loadMs });
    const full = node(
      [device('G0')],
      [idle('slow', 8000, 9000), idle('small', 2000, 3000), idle('quick', 20_000, 500)],
    );
    const reclaimed = (memoryMiB: number): unknown =>
      placeLeastLoaded(view([full]), request({ share: shareOf(20, memoryMiB) })).placement?.reclaim;
    expect(reclaimed(28_000)).toEqual(['quick']);
    expect(reclaimed(28_001)).toEqual(['quick', 'slow']);
    expect(reclaimed(38_000)).toEqual(['quick', 'slow', 'small']);
  });

  test('another device without anything to remove is better', () => {
    const full = resident('a', 'G0', { activations: [], memoryMiB: 38_000 });
    const running = resident('b', 'G1');
    const choice = placeLeastLoaded(view([node([device('G0'), device('G1')], [full, running])]), request());
    expect(choice.placement?.devices).toEqual(['G1']);
  });

  test.each<[string, Partial<PlacementRequest>, Partial<Resident>, DeviceMode, boolean]>([
    ['the same namespace', {}, {}, 'mps', true],
    ['another namespace', {}, { namespace: 'bob' }, 'mps', false],
    [
      'another namespace, both willing',
      { isolation: 'shared' },
      { namespace: 'bob', isolation: 'shared' },
      'mps',
      true,
    ],
    ['another namespace, one willing', { isolation: 'shared' }, { namespace: 'bob' }, 'mps', false],
    ['one that wants to be alone', {}, { isolation: 'exclusive' }, 'mps', false],
    ['others, and wants to be alone', { isolation: 'exclusive' }, {}, 'mps', false],
    ['another namespace without MPS', {}, { namespace: 'bob' }, 'timeslice', true],
    ['one that wants to be alone, without MPS', {}, { isolation: 'exclusive' }, 'timeslice', false],
    ['anybody where one process is served at a time', {}, {}, 'exclusive', false],
  ])('isolation, beside %s', (_, asks, there, mode, fits) => {
    const busy = node([device('G0', mode)], [resident('c', 'G0', there)]);
    expect(placeLeastLoaded(view([busy]), request(asks)).placement !== undefined).toBe(fits);
  });

  test('what idles and may not be beside it goes, whatever the memory', () => {
    const idle = resident('bobs', 'G0', { namespace: 'bob', activations: [] });
    expect(placeLeastLoaded(view([node([device('G0')], [idle])]), request()).placement?.reclaim).toEqual(['bobs']);
  });

  test('what the agent has not named yet cannot be removed', () => {
    const ended = reservation('G0', { namespace: 'bob', ended: true });
    const choice = placeLeastLoaded(view([node([device('G0')])], { reservations: [ended] }), request());
    expect(why(choice, 'G0')).toMatch(/isolation/);
  });

  test('leaves out devices that are not healthy, unknown or kept', () => {
    const bad = status('G0', { health: { state: 'cordoned', reasons: ['Xid 79'] } });
    const one = node([device('G0'), device('G1'), device('G2')], [], { status: [bad, status('G2')] });
    const choice = placeLeastLoaded(view([one], { kept: new Set(['G2']) }), request());
    expect(choice.placement).toBeUndefined();
    expect(choice.rejected.map(({ reason }) => reason)).toEqual([
      'cordoned: Xid 79',
      'nothing is known of it',
      'kept for one that waits for longer',
    ]);
  });

  test('gives no request an instance that goes for another one', () => {
    const idle = resident('c', 'G0', { action: '/alice/a', activations: [], memoryMiB: 30_000 });
    const placement = { ...reservation('G0').placement, reclaim: ['c'] };
    const there = (reservations: Reservation[]): NodeStatus => {
      const used = 30_000 + 500 * reservations.length;
      return node([device('G0')], [idle], { status: [status('G0', { usedMemoryMiB: used })] });
    };
    const asked = request({ share: shareOf(20, 16_000) });
    expect(placeLeastLoaded(view([there([])]), asked).reuses).toBe('c');
    const given = [reservation('G0', { action: '/alice/b', placement })];
    const choice = placeLeastLoaded(view([there(given)], { reservations: given }), asked);
    expect(choice.reuses).toBeUndefined();
    // The memory of the instance counts once: neither against the next request nor as a workload's.
    expect(choice.placement).toMatchObject({ devices: ['G0'] });
    expect(choice.placement).not.toHaveProperty('reclaim');
  });

  test('takes only a place that it may, and tells so of the others', () => {
    const one = node([device('G0'), device('G1')]);
    const choice = placeLeastLoaded(view([one], { allowed: new Set(['G1']) }), request());
    expect(choice.placement?.devices).toEqual(['G1']);
    expect(choice.rejected).toEqual([{ what: 'G0', reason: 'it may not run there', numbers: {} }]);
  });

  test('a device in MPS mode has 48 clients at most', () => {
    const clients = Array.from({ length: 48 }, (_, at) => resident(`c${at}`, 'G0', { memoryMiB: 1 }));
    const choice = placeLeastLoaded(view([node([device('G0')], clients)]), request());
    expect(why(choice, 'G0')).toMatch(/as many clients/);
    expect(placeLeastLoaded(view([node([device('G0')], clients.slice(1))]), request()).placement).toBeDefined();
  });

  test('puts one on each slice of a MIG device', () => {
    const slice = (uuid: string) => ({
      uuid,
      profile: '3g.20gb',
      startSlot: 0,
      slots: 4,
      smCount: 42,
      memoryMiB: 20_000,
    });
    const cut = device('G0', 'mig', { slices: [slice('MIG-a'), slice('MIG-b')] });
    const bobs = resident('c', 'G0', { namespace: 'bob', slice: 'MIG-a' });
    const choice = placeLeastLoaded(view([node([cut], [bobs])]), request());
    expect(choice.placement).toMatchObject({ devices: ['G0'], slice: 'MIG-b' });
    expect(why(choice, 'MIG-a')).toMatch(/isolation/);
  });

  const gang = (id: string, devices: string[], changes: Partial<Resident> = {}): Resident[] =>
    devices.map((uuid) => resident(id, uuid, { action: '/alice/a', gang: devices, activations: [], ...changes }));

  test('several devices are those of an instance that idles on all of them', () => {
    const three = [device('G0'), device('G1'), device('G2')];
    const warm = node(three, gang('warm', ['G0', 'G2']));
    const choice = placeLeastLoaded(view([warm]), request({ gpus: 2 }));
    expect([choice.placement?.devices, choice.reuses, choice.placement?.reclaim]).toEqual([
      ['G0', 'G2'],
      'warm',
      undefined,
    ]);
    const full = node(three, [...gang('warm', ['G0', 'G2']), resident('c', 'G1', { share: shareOf(100, 38_000) })]);
    expect(placeLeastLoaded(view([full]), request({ gpus: 3 })).placement).toBeUndefined();
    const busy = node(three, gang('warm', ['G0', 'G2'], { activations: ['running'] }));
    expect(placeLeastLoaded(view([busy]), request({ gpus: 2 })).placement).toBeUndefined();
    expect(placeLeastLoaded(view([busy]), request()).placement?.devices).toEqual(['G1']);
  });

  test('under MPS several devices are had alone: what idles there goes, once for all', () => {
    const two = [device('G0'), device('G1')];
    const idle = node(two, [resident('mine', 'G0', { activations: [] }), ...gang('pair', ['G0', 'G1'])]);
    const asks = request({ gpus: 2, action: '/alice/c' });
    expect(placeLeastLoaded(view([idle]), asks).placement?.reclaim?.sort()).toEqual(['mine', 'pair']);
    expect(placeLeastLoaded(view([idle]), request({ action: '/alice/c' })).placement?.reclaim).toEqual(['pair']);
    expect(placeLeastLoaded(view([node(two, [resident('c', 'G1')])]), asks).placement).toBeUndefined();
    const training = node(two, [], { status: [status('G0'), status('G1', { processes: [{ pid: 1, memoryMiB: 9 }] })] });
    expect(why(placeLeastLoaded(view([training]), asks), 'G1')).toBe('workloads are clients of its MPS server');
    const turns = [device('G0', 'timeslice'), device('G1', 'timeslice')];
    expect(placeLeastLoaded(view([node(turns, [resident('c', 'G1')])]), asks).placement?.devices).toHaveLength(2);
  });

  test('several devices are alike and on one node, or there are none', () => {
    const mixed = node([device('G0'), device('G1', 'mps', { type: 'h100' }), device('G2', 'timeslice')]);
    const choice = placeLeastLoaded(view([mixed]), request({ gpus: 2 }));
    expect(choice.placement).toBeUndefined();
    expect(why(choice, 'G0')).toBe('2 alike are needed on one node');
    const pair = node([device('G3'), device('G4'), device('G5')], [resident('c', 'G4')], { invoker: 'invoker1' });
    expect(placeLeastLoaded(view([mixed, pair]), request({ gpus: 2 })).placement).toMatchObject({
      ...{ invoker: 'invoker1', devices: ['G3', 'G5'] },
    });
  });
});

describe('what is kept for one that waits for long', () => {
  test('is what has most left, once what runs is over counted out', () => {
    const busy = node([device('G0'), device('G1')], [resident('c', 'G0', { memoryMiB: 9000 }), resident('d', 'G1')]);
    expect(placesToKeep(view([busy]), request({ share: shareOf(100, 38_000) }))).toEqual(['G1']);
    expect(placesToKeep(view([busy], { kept: new Set(['G1']) }), request())).toEqual(['G0']);
  });

  test('is as many as are needed, or none', () => {
    const one = node([device('G0'), device('G1')]);
    expect(placesToKeep(view([one]), request({ gpus: 2 }))).toHaveLength(2);
    expect(placesToKeep(view([one]), request({ gpus: 3 }))).toEqual([]);
    expect(placesToKeep(view([one]), request({ share: shareOf(20, 39_000) }))).toEqual([]);
  });
});

test('reservations whose runs are over go when the agent tells what is there, unless it shows them as running', () => {
  const running = reservation('G0', { activationId: 'r' });
  const over = reservation('G0', { activationId: 'o', ended: true });
  const shown = reservation('G0', { activationId: 's', ended: true });
  const one = node([device('G0')], [resident('c', 'G0', { activations: ['s'] })]);
  const ledger = ledgerOf({ nodes: [node([device('G0')])], reservations: [running, over, shown] });
  ledger.heard(one, 1);
  expect(Array.from(ledger.heldOn('G0'), ({ activationId }) => activationId)).toEqual(['r', 's']);
});

test('a placement whose node is silent stays given out, until its run should have ended', () => {
  const ledger = ledgerOf({ nodes: [node([device('G0')])], reservations: [] });
  ledger.hold(reservation('G0'), 5000);
  ledger.silent('invoker0');
  expect([ledger.accounts(), ledger.unended().length]).toEqual([[], 1]);
  expect(ledger.heard(node([device('G1')], [], { invoker: 'invoker1' }), 4000)).toEqual([]);
  ledger.heard(node([device('G0')]), 4500);
  expect(ledger.account('G0')).toMatchObject({ availableMiB: 18_000, busy: 1 });
  expect(ledger.heard(node([device('G1')], [], { invoker: 'invoker1' }), 5500)).toEqual(['given']);
  expect(ledger.account('G0')).toMatchObject({ availableMiB: 38_000, busy: 0 });
});

test('a place has what is on it, and nothing of its neighbours', () => {
  const one = node([device('G0'), device('G1')], [resident('c', 'G0')]);
  const given = [reservation('G1'), reservation('G0', { activationId: 'x' })];
  const ledger = ledgerOf({ nodes: [one], reservations: given });
  expect(ledger.account('G0')?.occupants.map(({ container, memoryMiB }) => [container, memoryMiB])).toEqual([
    ['c', 1000],
    [undefined, 20_000],
  ]);
  expect(ledger.account('G1')?.occupants.map(({ memoryMiB }) => memoryMiB)).toEqual([20_000]);
});

describe('what no device can ever serve', () => {
  test('is told with the largest there is', () => {
    const nodes = [node([device('G0'), device('G1', 'mps', { name: 'NVIDIA H100', memoryMiB: 80_000 })])];
    expect(capacityProblem(nodes, { memoryMiB: 76_000, gpus: 1 })).toBeUndefined();
    expect(capacityProblem(nodes, { memoryMiB: 76_001, gpus: 1 })).toBe(
      "'memoryMiB' is 76001, and the largest device, NVIDIA H100, can give 76000",
    );
  });

  test('is told of several devices, too', () => {
    const nodes = [node([device('G0'), device('G1'), device('G2', 'mig')])];
    expect(capacityProblem(nodes, { memoryMiB: 1, gpus: 2 })).toBeUndefined();
    expect(capacityProblem(nodes, { memoryMiB: 1, gpus: 3 })).toMatch(/'gpus' is 3, and no node has more than 2/);
    expect(capacityProblem([], { memoryMiB: 1, gpus: 1 })).toBe('no device can be used');
  });
});
