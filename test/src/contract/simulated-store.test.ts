import { describe, expect, test } from '@jest/globals';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { testArtifactStore } from './artifact-store.js';

testArtifactStore('the simulated store', () => {
  const store = simulatedStore({ clock: systemClock, random: seededRandom(1), latencyMs: 3 });
  const open = (): Promise<typeof store> => {
    store.crash();
    return Promise.resolve(store);
  };
  return Promise.resolve({ open, remove: () => Promise.resolve() });
});

describe('the simulated store', () => {
  test('loses some writes that were under way in a crash, and none that had resolved', async () => {
    const outcomes = new Set<boolean>();
    for (let seed = 0; seed < 20; seed++) {
      const clock = new SimulatedClock();
      const store = simulatedStore({ clock, random: seededRandom(seed) });
      await clock.runUntil(store.put('whisks', { _id: 'durable' }));
      let resolved = false;
      void store.put('whisks', { _id: 'under way' }).then(() => {
        resolved = true;
      });
      store.crash();
      expect((await clock.runUntil(store.get('whisks', 'durable')))._id).toBe('durable');
      outcomes.add(
        await clock.runUntil(
          store.get('whisks', 'under way').then(
            () => true,
            () => false,
          ),
        ),
      );
      await clock.runFor(1000);
      expect(resolved).toBe(false);
    }
    expect(outcomes).toEqual(new Set([true, false]));
  });
});
