import { describe, expect, test } from '@jest/globals';
import { gpuMemoryBound, shareClasses } from '@gpuwhisk/common/gpu';
import type { Device, DeviceStatus, NodeStatus } from '@gpuwhisk/common/gpu';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { capacityProblem } from '../../stages/geometry/capacity.js';
import { Ledger } from '../../ledger/ledger.js';
import type { PlacementRequest } from '../../ledger/account.js';
import { classAtOrAbove } from '../../view/shares.js';
import { placeDilu } from './place.js';
import { placesToKeep } from '../../stages/place/least-loaded.js';
import { oversubscriptionDefaults } from './oversubscription.js';
import type { Oversubscription } from './oversubscription.js';

const stamp = { epoch: 1, at: 0 };
const limits = { kept: new Set<string>(), isOpen: () => true };

/** A node whose devices have so much memory each. */
function rowOf(invoker: string, memoryMiB: readonly number[], mode: Device['mode'] = 'mps'): NodeStatus {
  const devices = memoryMiB.map((size, index): Device => ({
    ...{ uuid: `${invoker}.${index}`, index, name: 'NVIDIA A100', type: 'a100', smCount: 108, memoryMiB: size },
    ...{ mode, slices: [], simulated: true },
  }));
  const status = devices.map(({ uuid }): DeviceStatus => ({
    ...{ uuid, at: 0, usedMemoryMiB: 0, processes: [], health: { state: 'healthy', reasons: [] } },
  }));
  return { invoker, version: 0, at: 0, devices, status, residents: [] };
}

/** What an instance asks for; request and limit in thousandths. */
function requestOf(
  request: number,
  limit: number,
  memoryMiB: number,
  { gpus = 1, name = 'f', spans }: { gpus?: number; name?: string; spans?: number } = {},
): PlacementRequest {
  const share = {
    shareClass: classAtOrAbove(limit / 1000),
    smRequest: request / 1000,
    smLimit: limit / 1000,
    memoryMiB,
  };
  return {
    ...{
      action: `/n/${name}`,
      namespace: 'n',
      isolation: 'shared',
      share,
      memoryMiB,
      gpus,
      batch: 1,
      isBounded: false,
    },
    ...(spans !== undefined && { spans }),
  };
}

function hold(ledger: Ledger, id: string, request: PlacementRequest, bounds?: Oversubscription): string[] | undefined {
  const { placement } = placeDilu(ledger, request, limits, stamp, bounds);
  if (placement === undefined) return undefined;
  const { action, namespace, isolation } = request;
  ledger.hold({ activationId: id, action, namespace, isolation, placement, ended: false }, Infinity);
  return placement.devices;
}

interface Held {
  request: number;
  limit: number;
  memoryMiB: number;
}

/** A device with what was put there, by an account of the test's own. */
interface Filled {
  uuid: string;
  capacityMiB: number;
  held: Held[];
}

const sumOf = (held: readonly Held[], of: keyof Held): number => held.reduce((sum, one) => sum + one[of], 0);

/** The device that is fullest with an instance, of all that may take it: of those in use, if one of them may. */
function exhaustive(
  devices: readonly Filled[],
  instance: Held,
  { omega, gamma }: Oversubscription,
): string | undefined {
  let best: { uuid: string; inUse: boolean; score: bigint; capacity: bigint } | undefined;
  for (const { uuid, capacityMiB, held } of devices) {
    const all = [...held, instance];
    const request = sumOf(all, 'request');
    const memoryMiB = sumOf(all, 'memoryMiB');
    const isOver = held.length > 0 && (request > omega * 1000 || sumOf(all, 'limit') > gamma * 1000);
    if (isOver || memoryMiB > capacityMiB) continue;
    const capacity = BigInt(capacityMiB);
    const score = BigInt(request) * capacity + 1000n * BigInt(memoryMiB);
    const inUse = held.length > 0;
    const isBetter =
      best === undefined || (inUse === best.inUse ? score * best.capacity > best.score * capacity : inUse);
    if (isBetter) best = { uuid, inUse, score, capacity };
  }
  return best?.uuid;
}

const upTo = (random: Random, most: number): number => 1 + (random.uint32() % most);

describe('best fit', () => {
  test('is what an exhaustive search finds, whatever comes and goes', () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const random = seededRandom(seed);
      const ledger = new Ledger();
      const sizes = seed % 2 === 0 ? [40_000] : [24_000, 40_000, 80_000];
      const devices: Filled[] = [];
      for (let node = 0; node < 6; node += 1) {
        const row = rowOf(
          `node${node}`,
          [0, 1, 2].map(() => sizes[random.uint32() % sizes.length]!),
        );
        ledger.heard(row, 0);
        for (const { uuid, memoryMiB } of row.devices) {
          devices.push({ uuid, capacityMiB: Math.floor(memoryMiB * gpuMemoryBound), held: [] });
        }
      }
      const bounds = seed % 3 === 0 ? { omega: 1.2, gamma: 2 } : oversubscriptionDefaults;
      const running = new Map<string, { on: Filled; instance: Held }>();
      for (let step = 0; step < 150; step += 1) {
        const [id] = running.keys();
        if (id !== undefined && random.uint32() % 3 === 0) {
          const { on, instance } = running.get(id)!;
          running.delete(id);
          ledger.release(id);
          on.held = on.held.filter((one) => one !== instance);
          continue;
        }
        const request = upTo(random, 60) * 10;
        const limit = Math.min(1000, request + upTo(random, 30) * 10);
        const instance = { request, limit, memoryMiB: upTo(random, 20) * 1000 };
        const wanted = exhaustive(devices, instance, bounds);
        const found = hold(ledger, `i${step}`, requestOf(request, limit, instance.memoryMiB), bounds);
        expect(found).toEqual(wanted && [wanted]);
        if (wanted === undefined) continue;
        const on = devices.find(({ uuid }) => uuid === wanted)!;
        on.held.push(instance);
        running.set(`i${step}`, { on, instance });
      }
    }
  });

  test('looks at places as they are once nodes have come, gone or changed', () => {
    const ledger = new Ledger();
    ledger.heard(rowOf('b', [40_000, 40_000]), 0);
    expect(hold(ledger, 'one', requestOf(300, 400, 5000))).toEqual(['b.0']);
    ledger.heard(rowOf('a', [80_000]), 0);
    expect(hold(ledger, 'two', requestOf(300, 400, 5000))).toEqual(['b.0']);
    ledger.silent('b');
    expect(hold(ledger, 'three', requestOf(300, 400, 5000))).toEqual(['a.0']);
    ledger.heard(rowOf('b', [20_000, 40_000]), 0);
    expect(hold(ledger, 'four', requestOf(300, 400, 5000))).toEqual(['b.0']);
  });

  test('gives several devices of one node that are alike, those that are fullest', () => {
    const ledger = new Ledger();
    ledger.heard(rowOf('a', [40_000]), 0);
    ledger.heard(rowOf('b', [40_000, 40_000, 40_000]), 0);
    expect(hold(ledger, 'gang', requestOf(300, 400, 5000, { gpus: 2 }))).toEqual(['b.0', 'b.1']);
    expect(hold(ledger, 'more', requestOf(300, 400, 5000, { gpus: 2 }))).toBeUndefined();
  });

  test('says which bound closes a place', () => {
    const ledger = new Ledger();
    ledger.heard(rowOf('a', [40_000, 40_000, 40_000, 40_000]), 0);
    const put = [requestOf(700, 700, 1000), requestOf(500, 1000, 1000), requestOf(100, 100, 30_000)];
    // Each of them is put where the next one does not fit.
    for (const [at, request] of put.entries()) {
      const allowed = new Set([`a.${at}`]);
      const { placement } = placeDilu(ledger, request, { ...limits, allowed }, stamp);
      const { action, namespace, isolation } = request;
      ledger.hold(
        { activationId: `i${at}`, action, namespace, isolation, placement: placement!, ended: false },
        Infinity,
      );
    }
    const { placement, rejected } = placeDilu(ledger, requestOf(400, 600, 9000), limits, stamp);
    expect(placement?.devices).toEqual(['a.3']);
    expect(rejected).toEqual([
      { what: 'a.0', reason: 'its instances request too much', numbers: { requests: 0.7, request: 0.4, most: 1 } },
      { what: 'a.1', reason: 'its instances have too high limits', numbers: { limits: 1, limit: 0.6, most: 1.5 } },
      { what: 'a.2', reason: 'too little free memory', numbers: { availableMiB: 8000, needMiB: 9000 } },
    ]);
  });

  test('leaves idle instances where they are as long as a place is left', () => {
    const ledger = new Ledger();
    const row = rowOf('a', [40_000, 40_000]);
    const share = { shareClass: shareClasses.at(-1)!, smRequest: 0.8, smLimit: 1, memoryMiB: 10_000 };
    const idle = { container: 'c', action: '/n/other', namespace: 'n', isolation: 'shared', activations: [] } as const;
    ledger.heard({ ...row, residents: [{ ...idle, activations: [], device: 'a.0', share, memoryMiB: 10_000 }] }, 0);
    expect(ledger.account('a.0')).toMatchObject({ load: 0, requestSum: 800, limitSum: 1000, classSum: 1000 });
    expect(hold(ledger, 'one', requestOf(300, 400, 5000))).toEqual(['a.1']);
    expect(hold(ledger, 'two', requestOf(200, 400, 5000))).toEqual(['a.0']);
    // A launch has none removed; a task has.
    const large = requestOf(800, 1000, 30_000);
    expect(placeDilu(ledger, large, { ...limits, isNew: true }, stamp).placement).toBeUndefined();
    const { placement } = placeDilu(ledger, large, limits, stamp);
    expect([placement?.devices, placement?.reclaim]).toEqual([['a.0'], ['c']]);
  });

  test('starts in an idle instance of the function while what runs leaves room', () => {
    const ledger = new Ledger();
    const row = rowOf('a', [40_000, 40_000]);
    const request = requestOf(300, 400, 5000);
    const idle = { action: '/n/f', namespace: 'n', isolation: 'shared' as const, activations: [], memoryMiB: 5000 };
    ledger.heard({ ...row, residents: [{ ...idle, container: 'c', device: 'a.1', share: request.share }] }, 0);
    const busy = requestOf(500, 700, 1000, { name: 'busy' });
    expect(hold(ledger, 'busy', busy)).toEqual(['a.1']);
    const { placement, reuses } = placeDilu(ledger, request, limits, stamp);
    expect([placement?.devices, reuses]).toEqual([['a.1'], 'c']);
    expect(placeDilu(ledger, request, { ...limits, isNew: true }, stamp).reuses).toBeUndefined();
  });
});

describe('workload affinity', () => {
  test('puts a function beside the other instance of the one that it runs beside', () => {
    const ledger = new Ledger();
    ledger.heard(rowOf('a', [40_000, 40_000, 40_000], 'timeslice'), 0);
    const training = requestOf(500, 700, 10_000, { name: 'training', gpus: 2 });
    expect(hold(ledger, 't', training)).toEqual(['a.0', 'a.1']);
    expect(hold(ledger, 'c', requestOf(300, 400, 20_000, { name: 'c' }))).toEqual(['a.0']);
    // The fullest place that leaves room, since b runs nowhere yet.
    expect(hold(ledger, 'b1', requestOf(200, 300, 5000, { name: 'b' }))).toEqual(['a.0']);
    expect(hold(ledger, 'd', requestOf(600, 700, 30_000, { name: 'd' }))).toEqual(['a.2']);
    const b = requestOf(200, 300, 5000, { name: 'b' });
    // a.2 is fuller; on a.1 is the training that b runs beside on a.0.
    const { placement, rejected } = placeDilu(ledger, b, { ...limits, isNew: true }, stamp);
    expect(placement?.devices).toEqual(['a.1']);
    expect(rejected.find(({ what }) => what === 'a.2')?.reason).toBe(
      'on the chosen one is a function that shares another place with this one',
    );
    const stranger = requestOf(200, 300, 5000, { name: 'e' });
    expect(placeDilu(ledger, stranger, limits, stamp).placement?.devices).toEqual(['a.2']);
  });
});

describe('work of several devices', () => {
  test('is what looking at every node finds, whatever comes, goes and changes', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = seededRandom(seed);
      const ledger = new Ledger();
      const rows = Array.from({ length: 6 }, (_, node) => {
        const size = random.uint32() % 2 === 0 ? 40_000 : 80_000;
        return rowOf(`node${node}`, Array<number>(2 + (random.uint32() % 3)).fill(size), 'timeslice');
      });
      for (const row of rows) ledger.heard(row, 0);
      const held: string[] = [];
      for (let step = 0; step < 80; step += 1) {
        const row = rows[random.uint32() % rows.length]!;
        if (random.uint32() % 10 === 0) ledger.silent(row.invoker);
        if (random.uint32() % 5 === 0) ledger.heard(row, 0);
        if (held.length > 0 && random.uint32() % 3 === 0) ledger.release(held.shift()!);
        const request = requestOf(upTo(random, 60) * 10, 600, upTo(random, 20) * 1000, {
          ...{ gpus: upTo(random, 3), name: `f${step}` },
        });
        // Limits that name all places have each of them looked at.
        const allowed = new Set(ledger.accounts().map(({ id }) => id));
        const found = [limits, { ...limits, allowed }].map(
          (one) => placeDilu(ledger, request, one, stamp).placement?.devices,
        );
        expect(found[0]).toEqual(found[1]);
        if (hold(ledger, `i${step}`, request) !== undefined) held.push(`i${step}`);
      }
    }
  });

  test('opens as few devices as it can', () => {
    const ledger = new Ledger();
    ledger.heard(rowOf('a', [40_000, 40_000], 'timeslice'), 0);
    ledger.heard(rowOf('b', [40_000, 40_000], 'timeslice'), 0);
    const allowed = new Set(['b.1']);
    const small = requestOf(200, 300, 5000, { name: 'small' });
    const { placement } = placeDilu(ledger, small, { ...limits, allowed }, stamp);
    const { action, namespace, isolation } = small;
    ledger.hold({ activationId: 's', action, namespace, isolation, placement: placement!, ended: false }, Infinity);
    expect(hold(ledger, 'gang', requestOf(300, 400, 5000, { gpus: 2, name: 'gang' }))).toEqual(['b.1', 'b.0']);
  });

  test('spans the fewest fragments of a node rather than open a device, most free memory first', () => {
    const ledger = new Ledger();
    const capacity = Math.floor(40_000 * gpuMemoryBound);
    ledger.heard(rowOf('a', [40_000, 40_000, 40_000, 40_000], 'timeslice'), 0);
    const heldMiB = [30_000, 22_000, 26_000];
    for (const [at, memoryMiB] of heldMiB.entries()) {
      const one = requestOf(300, 400, memoryMiB, { name: `held${at}` });
      const { placement } = placeDilu(ledger, one, { ...limits, allowed: new Set([`a.${at}`]) }, stamp);
      const { action, namespace, isolation } = one;
      ledger.hold(
        { activationId: `h${at}`, action, namespace, isolation, placement: placement!, ended: false },
        Infinity,
      );
    }
    const large = requestOf(400, 800, 20_000, { name: 'large' });
    expect(placeDilu(ledger, large, limits, stamp).placement?.devices).toEqual(['a.3']);
    const { placement } = placeDilu(ledger, { ...large, spans: 4 }, limits, stamp);
    const first = capacity - 22_000;
    expect(placement).toMatchObject({ devices: ['a.1', 'a.2'], partsMiB: [first, 20_000 - first] });
    expect(placement?.share).toMatchObject({ smRequest: 0.4, smLimit: 0.4 });
    const { action, namespace, isolation } = large;
    ledger.hold({ activationId: 'l', action, namespace, isolation, placement: placement!, ended: false }, Infinity);
    expect([1, 2].map((at) => ledger.account(`a.${at}`)?.freeMiB)).toEqual([0, capacity - 26_000 - (20_000 - first)]);
    expect([1, 2].map((at) => ledger.account(`a.${at}`)?.requestSum)).toEqual([700, 700]);
    // Its instance serves it again on the parts that it has, whatever is free by now.
    const rowWith = rowOf('a', [40_000, 40_000, 40_000, 40_000], 'timeslice');
    const idle = ['a.1', 'a.2'].map((device, at) => ({
      ...{ container: 'c', gang: ['a.1', 'a.2'], action, namespace, isolation, device, activations: [] },
      ...{ share: placement!.share, memoryMiB: placement!.partsMiB![at]! },
    }));
    const later = new Ledger();
    later.heard({ ...rowWith, residents: idle }, 0);
    const again = placeDilu(later, { ...large, spans: 4 }, limits, stamp);
    expect(again).toMatchObject({ reuses: 'c', placement: { devices: ['a.1', 'a.2'], partsMiB: placement!.partsMiB } });
    // What is left of the fragments is too little.
    const huge = requestOf(100, 200, 24_000, { name: 'huge', spans: 2 });
    expect(placeDilu(ledger, huge, limits, stamp).placement?.devices).toEqual(['a.3']);
  });

  test('is refused when it is written where no devices that are alike hold it together', () => {
    const nodes = [rowOf('a', [40_000, 40_000]), rowOf('b', [40_000, 60_000], 'mig')];
    const capacity = Math.floor(40_000 * gpuMemoryBound);
    const asked = { memoryMiB: 2 * capacity, gpus: 1 };
    expect(capacityProblem(nodes, { ...asked, spans: 2 })).toBeUndefined();
    expect(capacityProblem(nodes, asked)).toMatch(/, can give \d+$/);
    const more = { memoryMiB: 2 * capacity + 1, gpus: 1, spans: 4 };
    expect(capacityProblem(nodes, more)).toContain(`; 4 alike on one node can give ${2 * capacity} together`);
  });

  test.each(['mps', 'timeslice'] as const)(
    'opens devices under %s for what none holds, and has idle instances go',
    (mode) => {
      const ledger = new Ledger();
      const capacity = Math.floor(40_000 * gpuMemoryBound);
      const row = rowOf('a', [40_000, 40_000], mode);
      ledger.heard(row, 0);
      const large = requestOf(400, 800, 60_000, { name: 'large', spans: 2 });
      const parts = { devices: ['a.0', 'a.1'], partsMiB: [capacity, 60_000 - capacity] };
      expect(placeDilu(ledger, large, limits, stamp).placement).toMatchObject(parts);
      expect(placeDilu(ledger, { ...large, spans: 1 }, limits, stamp).placement).toBeUndefined();
      expect(placeDilu(ledger, { ...large, memoryMiB: 2 * capacity + 1 }, limits, stamp).placement).toBeUndefined();
      const idle = {
        ...{ container: 'c', action: '/n/other', namespace: 'n', isolation: 'shared' as const, device: 'a.1' },
        ...{ share: requestOf(100, 200, 30_000).share, memoryMiB: 30_000, activations: [] },
      };
      ledger.heard({ ...row, residents: [idle] }, 0);
      const { placement } = placeDilu(ledger, large, limits, stamp);
      expect(placement).toMatchObject({ ...parts, reclaim: ['c'] });
      // A launch ahead of requests has nothing go.
      expect(placeDilu(ledger, large, { ...limits, isNew: true }, stamp).placement).toBeUndefined();
      ledger.heard({ ...row, residents: [{ ...idle, activations: ['a1'] }] }, 0);
      expect(placeDilu(ledger, large, limits, stamp).placement).toBeUndefined();
      // Overdue, it has both kept for it.
      expect(placesToKeep(ledger, large, limits)).toEqual(['a.0', 'a.1']);
    },
  );
});
