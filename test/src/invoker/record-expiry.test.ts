import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { RecordExpiry } from '@gpuwhisk/common/activations/record-expiry';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { StoreWriteError } from '@gpuwhisk/common/store/artifact-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { activation } from '../contract/store/documents.js';
import { storeLike } from '../simulation/delegates.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { steppedClock } from '../simulation/troubles.js';
import type { SteppedClock } from '../simulation/troubles.js';

const minute = 60_000;
const hour = 60 * minute;

describe('the expiry of records', () => {
  let base: SimulatedClock;
  let clock: SteppedClock;
  let store: ArtifactStore;
  let state: ClusterState;
  let failures: number;
  let opened: RecordExpiry[];

  beforeEach(() => {
    base = new SimulatedClock();
    clock = steppedClock(base);
    const inner = simulatedStore({ clock: base, random: seededRandom(1) });
    store = storeLike(inner, {
      expire(beforeMs) {
        if (failures-- > 0) throw new StoreWriteError('disk full');
        return inner.expire(beforeMs);
      },
    });
    state = embeddedState(base);
    failures = 0;
    opened = [];
  });

  afterEach(async () => {
    for (const one of opened) await base.runUntil(one.close());
    await state.close();
  });

  const open = (holder = 'controller0'): RecordExpiry => {
    const times = { ttlMs: 2 * hour, firstMs: 10 * minute, everyMs: hour };
    const logger = createLogger({ level: 'silent' });
    const expiry = new RecordExpiry({ store, clock, logger, state, holder, times });
    opened.push(expiry);
    expiry.open();
    return expiry;
  };
  /** Adds records that ended this many ms ago. */
  const add = (...agesMs: number[]): Promise<boolean[]> =>
    base.runUntil(
      store.createMany(
        'activations',
        agesMs.map((age, n) => activation(n, clock.now() - age - 5)),
      ),
    );
  const left = async (): Promise<number> => (await base.runUntil(store.list('activations', { limit: 1000 }))).length;

  test('begins a while after the start, and goes on', async () => {
    await add(0, 3 * hour, ...Array.from({ length: 20 }, () => 4 * hour));
    const expiry = open();
    await base.runFor(9 * minute);
    expect(await left()).toBe(22);
    await base.runFor(2 * minute);
    expect(await left()).toBe(1);
    await base.runFor(2 * hour);
    expect([await left(), expiry.removed]).toEqual([0, 22]);
  });

  test('a store that fails is asked again with the next look', async () => {
    await add(3 * hour);
    failures = 1;
    open();
    await base.runFor(20 * minute);
    expect(await left()).toBe(1);
    await base.runFor(hour);
    expect(await left()).toBe(0);
  });

  test('one process of a cluster at a time removes records', async () => {
    await add(3 * hour);
    const lease = await base.runUntil(state.acquireLease('record-expiry', 'controller1', 30 * minute));
    expect(lease).toBeDefined();
    open();
    await base.runFor(20 * minute);
    expect(await left()).toBe(1);
    await base.runFor(hour);
    expect(await left()).toBe(0);
  });

  test.each([10 * hour, -10 * hour])('a wall clock that is set by %i ms lets no record expire early', async (byMs) => {
    open();
    await base.runFor(minute);
    await add(0);
    clock.stepWall(byMs);
    await base.runFor(90 * minute);
    expect(await left()).toBe(1);
  });

  test('a close ends it after the step under way', async () => {
    await add(...Array.from({ length: 30 }, () => 3 * hour));
    const expiry = open();
    await base.runFor(10 * minute + 40);
    await base.runUntil(expiry.close());
    expect(expiry.removed).toBeGreaterThan(0);
    expect(expiry.removed).toBeLessThan(30);
    await base.runFor(2 * hour);
    expect(await left()).toBe(30 - expiry.removed);
  });
});
