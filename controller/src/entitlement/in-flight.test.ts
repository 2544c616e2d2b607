import { beforeEach, expect, test } from '@jest/globals';
import { loadConfig } from '@gpuwhisk/common/config';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import type { GpuNeed } from '@gpuwhisk/common/gpu';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { EarlierActivations, InFlight } from './in-flight.js';

const caller: Identity = {
  ...{ subject: 'alice', namespace: { name: 'alice and bob', uuid: 'u' }, authkey: { api_key: 'u:k' }, rights: [] },
  limits: {},
};
const gpu: GpuNeed = {
  ...{ memoryMiB: 1000, gpus: 2, class: 'inference', batch: 1, isolation: 'namespace', timeoutMs: 60_000 },
};
const { limits } = loadConfig();
const logger = createLogger({ level: 'silent' });

let elapsedMs: number;
let timers: { atMs: number; run: () => void }[];
const setTimer: Clock['setTimer'] = (delayMs, run) => {
  const timer = { atMs: elapsedMs + delayMs, run };
  timers.push(timer);
  return { cancel: () => (timers = timers.filter((other) => other !== timer)) };
};
const clock: Clock = {
  now: () => elapsedMs,
  monotonicMs: () => elapsedMs,
  setTimer,
  setBackgroundTimer: setTimer,
  defer: (run) => run(),
};
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function pass(ms: number): Promise<void> {
  elapsedMs += ms;
  const due = timers.filter(({ atMs }) => atMs <= elapsedMs);
  timers = timers.filter((timer) => !due.includes(timer));
  for (const { run } of due) run();
  await settled();
}

let records: Set<string>;
let asked: number;
const store: Pick<ArtifactStore, 'get'> = {
  get: (_database, id) => {
    asked++;
    return records.has(id) ? Promise.resolve({ _id: id }) : Promise.reject(new NoDocumentError(id));
  },
};

let state: ClusterState;
const life = (instance: number): InFlight =>
  new InFlight({ state, instance, limits, clock, metrics: createMetrics(), logger });
const begin = async (inFlight: InFlight, id: string, need?: GpuNeed): Promise<void> =>
  inFlight.begin(caller, { activationId: id, timeoutMs: 60_000, bounded: true, gpu: need });
const held = async (): Promise<number[]> => [
  await state.holds('inFlight').count('u'),
  await state.holds('gpuInFlight').count('u'),
];

beforeEach(() => {
  elapsedMs = 0;
  timers = [];
  records = new Set();
  asked = 0;
  state = embeddedState(clock);
});

test('those with a record count no more at the start, others from their completion, record or time on', async () => {
  const before = life(1);
  for (const id of ['recorded', 'completes', 'late', 'lost']) await begin(before, id, gpu);
  await begin(life(2), 'of another controller');
  expect(await held()).toEqual([5, 4]);
  records.add('alice and bob/recorded').add('alice and bob/of another controller');

  const inFlight = life(1);
  const earlier = new EarlierActivations({ inFlight, store, clock, logger });
  await earlier.open();
  expect([inFlight.size, ...(await held())]).toEqual([3, 4, 3]);
  expect(inFlight.end('completes')).toBe(true);
  expect(await held()).toEqual([3, 2]);

  records.add('alice and bob/late');
  await pass(2000);
  expect(await held()).toEqual([2, 1]);
  await pass(200_000);
  expect(await held()).toEqual([0, 0]);
  // The next activation finds that the last one is lost. The state is not asked.
  await begin(inFlight, 'next');
  await pass(60_000);
  const askedBefore = asked;
  await pass(60_000);
  expect([inFlight.has('lost'), asked]).toEqual([false, askedBefore]);
  earlier.close();
});

test('a start does not wait for a store that does not answer', async () => {
  await begin(life(1), 'one');
  const inFlight = life(1);
  const silent: Pick<ArtifactStore, 'get'> = { get: () => new Promise(() => undefined) };
  const earlier = new EarlierActivations({ inFlight, store: silent, clock, logger });
  let isOpen = false;
  const opened = earlier.open().then(() => (isOpen = true));
  await settled();
  await pass(4000);
  expect(isOpen).toBe(false);
  await pass(1000);
  await opened;
  expect([isOpen, inFlight.size]).toEqual([true, 1]);
  earlier.close();
});
