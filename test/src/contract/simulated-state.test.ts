import { expect, test } from '@jest/globals';
import type { JsonValue } from '@gpuwhisk/common/json';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedState } from '@gpuwhisk/common/testing/simulated-state';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { testClusterState } from './cluster-state.js';

testClusterState('the simulated state', () => {
  const clock = new SimulatedClock();
  const random = seededRandom(7);
  const inner = embeddedState(clock);
  const one = simulatedState(inner, { clock, random });
  const other = simulatedState(inner, { clock, random, latencyMs: 50 });
  return Promise.resolve({
    one,
    other,
    run: (work) => clock.runUntil(Promise.resolve(work())),
    pass: (durationMs) => clock.runFor(durationMs),
    now: () => clock.now(),
    close: async () => {
      await other.close();
      await inner.close();
    },
  });
});

test('a process that is cut off fails and misses the news; what it asked for may have happened', async () => {
  const outcomes = new Set<string>();
  for (let seed = 0; seed < 20; seed++) {
    const clock = new SimulatedClock();
    const inner = embeddedState(clock);
    const state = simulatedState(inner, { clock, random: seededRandom(seed), latencyMs: 20 });
    const news: JsonValue[] = [];
    await clock.runUntil(state.subscribe('news', (message) => news.push(message)));
    const answered = Promise.resolve(state.holds('inFlight').hold('ns', 't', 60_000)).then(
      () => 'answered',
      (error: Error) => error.name,
    );
    await clock.runFor(8);
    state.cutOff(true);
    await clock.runFor(100);
    outcomes.add(`${await answered}, ${inner.holds('inFlight').count('ns')} held`);
    await inner.publish('news', 'missed');
    await clock.runFor(100);
    state.cutOff(false);
    await inner.publish('news', 'heard');
    await clock.runFor(100);
    expect(news).toEqual(['heard']);
  }
  expect(outcomes).toEqual(
    new Set(['answered, 1 held', 'StateUnavailableError, 1 held', 'StateUnavailableError, 0 held']),
  );
});
