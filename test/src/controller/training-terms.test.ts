// Training jobs under two controllers, one of which was the leader and has not noticed its end.
import { beforeEach, expect, test } from '@jest/globals';
import { createLogger } from '@gpuwhisk/common/logging';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import type { InvokeRequest } from '@gpuwhisk/controller/invoke/invoke-service';
import { TrainingJobs } from '@gpuwhisk/controller/gpu/training/training-jobs';
import type { TrainingJobsParts } from '@gpuwhisk/controller/gpu/training/training-jobs';
import type { TrainingOrder } from '@gpuwhisk/controller/gpu/training/training-job';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const order: TrainingOrder = {
  ...{ namespace: 'guest', action: '/guest/train', parameters: [], gpus: 1, members: 1, maxRestarts: 0 },
  ...{ timeLimitMs: 100_000, rendezvousMs: 0 },
};

/** A controller whose lease the test gives and takes, and whose next write of a job may be late. */
interface Controller {
  jobs: TrainingJobs;
  lease: { epoch: number | undefined };
  /** Holds back the next write; the function returned lets it reach the store. */
  delayWrite: () => () => void;
  /** Attempts that were sent. */
  sent: number[];
}

let clock: SimulatedClock;
let store: ArtifactStore;
let state: ReturnType<typeof embeddedState>;

beforeEach(() => {
  clock = new SimulatedClock();
  store = simulatedStore({ clock, random: seededRandom(1), latencyMs: 2 });
  state = embeddedState(clock);
});

function controller(seed: number): Controller {
  const lease: Controller['lease'] = { epoch: undefined };
  const sent: number[] = [];
  let held: Promise<void> | undefined;
  const delayed = Object.assign(Object.create(store) as ArtifactStore, {
    get: store.get.bind(store),
    list: store.list.bind(store),
    delete: store.delete.bind(store),
    put: async (...write: Parameters<ArtifactStore['put']>) => {
      const wait = held;
      held = undefined;
      await wait;
      return store.put(...write);
    },
  });
  const gpuScheduler = {
    get epoch() {
      return lease.epoch;
    },
    isQueued: () => true,
    cancel: () => undefined,
  };
  const parts = {
    ...{ store: delayed, state, gpuScheduler, clock, random: seededRandom(seed) },
    gpuTable: { nodes: () => [] },
    gpuDesired: { retire: () => Promise.resolve(), isRetiring: () => false },
    invoker: { invoke: ({ training }: InvokeRequest) => Promise.resolve(void sent.push(training?.attempt ?? 0)) },
    identities: { ofNamespace: () => Promise.resolve({}) },
    resolver: { resolve: () => Promise.resolve({}) },
    lock: () => [],
    unlock: (payload: unknown) => payload,
    logger: createLogger({ level: 'fatal' }),
  } as unknown as TrainingJobsParts;
  const delayWrite = (): (() => void) => {
    let release!: () => void;
    held = new Promise((resolve) => (release = resolve));
    return release;
  };
  return { jobs: new TrainingJobs(parts), lease, delayWrite, sent };
}

/** Lets `ms` go by. */
async function advance(ms: number): Promise<void> {
  let over = false;
  clock.setTimer(ms, () => (over = true));
  while (!over) await clock.step();
}

/** The outcome of `work` while the simulated time goes on. */
async function settled<Result>(work: Promise<Result>): Promise<Result | Error> {
  let outcome: { value: Result | Error } | undefined;
  void work.then(
    (value) => (outcome = { value }),
    (error: Error) => (outcome = { value: error }),
  );
  for (let turn = 0; outcome === undefined && turn < 1000; turn++) await advance(10);
  if (outcome === undefined) throw new Error('it has not ended');
  return outcome.value;
}

test('a write of a leader whose term has ended is refused, also one that was under way', async () => {
  const [first, second] = [controller(1), controller(2)];
  first.lease.epoch = 1;
  const job = await settled(first.jobs.start(order));
  if (job instanceof Error) throw job;
  expect(first.sent).toEqual([1]);

  // The first controller has checked its lease, and its write is on the way.
  const release = first.delayWrite();
  const late = first.jobs.stop(job.id, 'guest', 0);
  await advance(50);
  first.lease.epoch = undefined;
  second.lease.epoch = 2;
  second.jobs.open();
  await advance(3000);
  release();
  expect(await settled(late)).toMatchObject({ name: 'DocumentConflictError' });
  expect(await settled(second.jobs.get(job.id, 'guest'))).toMatchObject({ id: job.id, state: 'queued' });
  expect(await settled(first.jobs.stop(job.id, 'guest', 0))).toMatchObject({ status: 503 });
  expect(await settled(second.jobs.stop(job.id, 'guest', 0))).toMatchObject({ state: 'stopping' });
  await settled(second.jobs.close());
});

test('a job that a leader accepts as its term ends begins no run there, and is gone', async () => {
  const [first, second] = [controller(1), controller(2)];
  first.lease.epoch = 1;
  const release = first.delayWrite();
  const late = first.jobs.start(order);
  await advance(50);
  first.lease.epoch = undefined;
  second.lease.epoch = 2;
  second.jobs.open();
  await advance(3000);
  release();
  expect(await settled(late)).toMatchObject({ status: 503 });
  expect(first.sent).toEqual([]);
  expect(await settled(second.jobs.list())).toEqual([]);
  await settled(second.jobs.close());
});

test('a job that was stored late, by a leader that died then, is begun by the next leader', async () => {
  const [first, second] = [controller(1), controller(2)];
  first.lease.epoch = 1;
  const accepted = await settled(first.jobs.start(order));
  if (accepted instanceof Error) throw accepted;
  const document = await settled(store.get('gpu', `training-job/guest/${accepted.id}`));
  if (document instanceof Error) throw document;
  await settled(store.delete('gpu', document._id, String(document._rev)));
  second.lease.epoch = 2;
  second.jobs.open();
  await advance(3000);
  const { _id, ...fields } = document;
  delete fields._rev;
  await settled(store.put('gpu', { ...fields, _id, state: 'waiting', attempts: [], retryAt: 0 }));
  await advance(70_000);
  expect(second.sent).toEqual([1]);
  await settled(second.jobs.close());
});
