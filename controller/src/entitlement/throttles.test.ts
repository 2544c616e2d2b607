import { beforeEach, describe, expect, test } from '@jest/globals';
import { loadConfig } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { countsAtHand } from '@gpuwhisk/common/state/counts-at-hand';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedState } from '@gpuwhisk/common/testing/simulated-state';
import type { SimulatedState } from '@gpuwhisk/common/testing/simulated-state';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { UserEvents } from '@gpuwhisk/common/user-events';
import { InFlight, inFlightHolds } from './in-flight.js';
import { Throttles } from './throttles.js';

const limits = loadConfig({
  base: { limits: { invocationsPerMinute: 3, concurrentInvocations: 2, firesPerMinute: 1 } },
}).limits;
const caller: Identity = {
  subject: 'alice-subject',
  namespace: { name: 'alice', uuid: 'alice-uuid' },
  authkey: { api_key: 'alice-uuid:key' },
  rights: [],
  limits: {},
};
const minuteMs = 60_000;

let elapsedMs: number;
/** A clock that stands still and runs timers at once. */
const clock: Clock = {
  now: () => 1_700_000_040_000 + elapsedMs,
  monotonicMs: () => elapsedMs,
  setTimer(_delayMs, run) {
    queueMicrotask(run);
    return { cancel: () => undefined };
  },
  setBackgroundTimer: () => ({ cancel: () => undefined }),
  defer: (run) => run(),
};

function partsOn(state: ClusterState): {
  throttles: Throttles;
  inFlight: InFlight;
  lines: string[];
  /** The events that were sent. */
  told: [string, number][];
} {
  const told: [string, number][] = [];
  const userEvents: UserEvents = {
    activation: () => undefined,
    metric: (name, value) => void told.push([name, value]),
  };
  const lines: string[] = [];
  const logger = createLogger({ level: 'warn', destination: { write: (line) => void lines.push(line) } });
  const metrics = createMetrics();
  const store = { storedBytes: () => 0 };
  const shared = { state, store, limits, clock, metrics, logger, userEvents };
  return { throttles: new Throttles(shared), inFlight: new InFlight(shared), lines, told };
}

const begin = async (inFlight: InFlight, id: string, timeoutMs = 60_000, bounded = true): Promise<void> =>
  inFlight.begin(caller, { activationId: id, timeoutMs, bounded });

beforeEach(() => {
  elapsedMs = 0;
});

const places: [string, () => ClusterState][] = [
  ['in this process', () => embeddedState(clock)],
  ['elsewhere', () => simulatedState(embeddedState(clock), { clock, random: seededRandom(1) })],
];

describe.each(places)('with the state %s', (_, makeState) => {
  test('rates and numbers in flight are bounded', async () => {
    const { throttles, inFlight, told } = partsOn(makeState());
    await throttles.admit(caller);
    await begin(inFlight, 'one');
    await throttles.admit(caller);
    await begin(inFlight, 'two');
    await expect((async () => throttles.admit(caller))()).rejects.toMatchObject({
      status: 429,
      message: 'Too many concurrent requests in flight (count: 2, allowed: 2). (setting: limits.concurrentInvocations)',
    });
    await expect((async () => throttles.admit(caller))()).rejects.toMatchObject({
      status: 429,
      message: 'Too many requests in the last minute (count: 4, allowed: 3). (setting: limits.invocationsPerMinute)',
    });
    await throttles.admitFire(caller);
    await expect(throttles.admitFire(caller)).rejects.toMatchObject({
      message: 'Too many requests in the last minute (count: 2, allowed: 1). (setting: limits.firesPerMinute)',
    });
    expect(told).toEqual([
      ['ConcurrentInvocations', 1],
      ['ConcurrentInvocations', 2],
      ['ConcurrentRateLimit', 1],
      ['TimedRateLimit', 1],
      ['TimedRateLimit', 1],
    ]);
  });

  test('who finds the limit reached waits a little for others to end', async () => {
    const { throttles, inFlight } = partsOn(makeState());
    await Promise.all([begin(inFlight, 'one'), begin(inFlight, 'two')]);
    const admitted = throttles.admit(caller);
    inFlight.end('one');
    await admitted;
  });

  test('calls that were admitted together are still bounded when they begin; parts of sequences are not', async () => {
    const { inFlight } = partsOn(makeState());
    await Promise.all([begin(inFlight, 'one'), begin(inFlight, 'two')]);
    await expect(begin(inFlight, 'three')).rejects.toMatchObject({
      message: 'Too many concurrent requests in flight (count: 2, allowed: 2). (setting: limits.concurrentInvocations)',
    });
    await begin(inFlight, 'part', 60_000, false);
    expect(inFlight.size).toBe(3);
    for (const id of ['one', 'two', 'part', 'never begun']) inFlight.end(id);
    expect(inFlight.size).toBe(0);
    await begin(inFlight, 'four');
  });

  test.each([
    [1000, 3 * minuteMs],
    [5 * minuteMs, 11 * minuteMs],
  ])('with a time limit of %d ms, a completion that has not come after %d ms never will', async (timeoutMs, waitMs) => {
    const { throttles, inFlight, lines } = partsOn(makeState());
    await Promise.all([begin(inFlight, 'one', timeoutMs), begin(inFlight, 'two', timeoutMs)]);
    elapsedMs = waitMs - 1000;
    await expect((async () => throttles.admit(caller))()).rejects.toMatchObject({ status: 429 });
    elapsedMs = waitMs + 1000;
    await throttles.admit(caller);
    await begin(inFlight, 'three');
    expect(inFlight.size).toBe(1);
    expect(lines.filter((line) => line.includes('is lost'))).toHaveLength(2);
    inFlight.end('one');
    expect(inFlight.size).toBe(1);
  });
});

test('while the state cannot be reached each process bounds what it lets in, and knows what it had in flight', async () => {
  const cut: SimulatedState = simulatedState(embeddedState(clock), { clock, random: seededRandom(1) });
  let answersFromHere = 0;
  const { throttles, inFlight } = partsOn(countsAtHand(cut, clock, () => answersFromHere++));
  await throttles.admit(caller);
  await begin(inFlight, 'before');
  expect(answersFromHere).toBe(0);
  cut.cutOff(true);
  await throttles.admit(caller);
  await begin(inFlight, 'one');
  await expect(begin(inFlight, 'two')).rejects.toMatchObject({
    message: 'Too many concurrent requests in flight (count: 2, allowed: 2). (setting: limits.concurrentInvocations)',
  });
  inFlight.end('before');
  await begin(inFlight, 'two');
  inFlight.end('one');
  await throttles.admit(caller);
  await throttles.admit(caller);
  await expect((async () => throttles.admit(caller))()).rejects.toMatchObject({
    status: 429,
    message: 'Too many requests in the last minute (count: 4, allowed: 3). (setting: limits.invocationsPerMinute)',
  });
  await throttles.admitFire(caller);
  await expect(throttles.admitFire(caller)).rejects.toMatchObject({ status: 429 });
  expect(answersFromHere).toBeGreaterThan(5);
  inFlight.end('two');
  elapsedMs = 2 * minuteMs;
  cut.cutOff(false);
  // The cluster counts the previous activation until it hears of the next end.
  await throttles.admit(caller);
  await begin(inFlight, 'three');
  inFlight.end('three');
  const shared = inFlightHolds(cut);
  for (let turn = 0; turn < 1000 && (await shared.count(caller.namespace.uuid)) > 0; turn++);
  expect(await shared.count(caller.namespace.uuid)).toBe(0);
});
