import { expect, test } from '@jest/globals';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { testClusterState } from './cluster-state.js';

testClusterState('the embedded state', () => {
  const clock = new SimulatedClock();
  const state = embeddedState(clock);
  return Promise.resolve({
    one: state,
    other: state,
    run: async (work) => work(),
    pass: (durationMs) => clock.runFor(durationMs),
    now: () => clock.now(),
    close: () => state.close(),
  });
});

test('counters and holds of the embedded state answer at once', () => {
  const state = embeddedState(new SimulatedClock());
  expect(state.windowCounters('invocations', 60_000).add('a')).toBe(1);
  expect(state.holds('inFlight').hold('a', 't', 1000)).toBe(1);
  expect(state.holds('inFlight').release('a', 't')).toBeUndefined();
  expect(state.holds('inFlight').count('a')).toBe(0);
});
