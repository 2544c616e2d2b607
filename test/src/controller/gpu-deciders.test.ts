// Two controllers, one of which is the leader: transfers of the lease from one to the other.
import { beforeEach, expect, test } from '@jest/globals';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import type { Delivery, MessageBus } from '@gpuwhisk/common/bus/message-bus';
import { configSchema } from '@gpuwhisk/common/config-schema';
import { activationDocument } from '@gpuwhisk/common/entities/activation';
import { gpuNeedOf, readGpuAnnotation } from '@gpuwhisk/common/entities/gpu-annotation';
import { gpuDeciderTable } from '@gpuwhisk/common/gpu';
import type { InHand } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { GpuFence, GpuHandover } from '@gpuwhisk/controller/gpu/handover/gpu-handover';
import { DesiredState } from '@gpuwhisk/controller/gpu/state/desired-state';
import { GpuScheduler } from '@gpuwhisk/controller/gpu/scheduler/gpu-scheduler';
import { GpuTable } from '@gpuwhisk/controller/gpu/state/gpu-table';
import { PerformanceData } from '@gpuwhisk/controller/gpu/learning/performance-data';
import { a100, nodeRow, setNode } from '../api/gpu-nodes.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';

const logger = createLogger({ level: 'silent' });
const random = seededRandom(1);
const options = { ...configSchema.parse({}).gpu, maxWaitMs: 30_000 };
const recordLevels = {
  storeBlockingResultLevel: 'STORE_ALWAYS',
  storeNonBlockingResultLevel: 'STORE_ALWAYS',
} as const;
const topicOptions = { durable: false, maxPendingMessages: 1000, maxPendingBytes: Infinity };

let clock: SimulatedClock;
let bus: EmbeddedBus;
let state: ReturnType<typeof embeddedState>;
let store: ReturnType<typeof simulatedStore>;
/** Messages that reached the invokers, in order. */
let arrivals: { invoker: string; message: ActivationMessage }[];
let version: number;

/** A controller whose process can die, and whose lease the test gives and takes. */
class TestController {
  scheduler!: GpuScheduler;
  /** Whether the process is dead: then it acknowledges and sends nothing. */
  isDead = false;
  /** Whether the process dies right after its next message to an invoker. */
  diesAfterSending = false;
  /** Number of messages to invokers that arrive without an acknowledgement. */
  unacknowledged = 0;
  private epoch: number | undefined;
  private readonly listeners: (() => void)[] = [];

  constructor(private readonly instance: number) {}

  async open(): Promise<this> {
    const { instance } = this;
    const metrics = createMetrics();
    const table = new GpuTable(state, clock, logger);
    await table.open();
    const lease = {
      epochOf: () => this.epoch,
      get epoch() {
        return this.epochOf();
      },
      onChange: (listener: () => void) => void this.listeners.push(listener),
    };
    const shared = { bus: this.bus(), state, logger, clock, store, metrics, table, lease, instance };
    await bus.ensureTopic(`gpu${instance}`, topicOptions);
    this.scheduler = new GpuScheduler({
      ...shared,
      random,
      ...{
        desired: new DesiredState({ state, lease, logger }),
        workloads: { shown: [] },
      },
      records: new RecordWriter(store, clock, logger),
      recordLevels,
      performanceData: await PerformanceData.open({ ...shared, random, options }),
      options,
      handover: new GpuHandover({ ...shared, fence: new GpuFence(shared), topicOptions }),
    });
    await this.scheduler.open(() => false);
    return this;
  }

  /** Gives this controller the lease in `epoch`, or takes it away. `isTold`: whether the controller notices. */
  async decides(epoch: number | undefined, isTold = true): Promise<void> {
    this.epoch = epoch;
    if (isTold) for (const listener of this.listeners) listener();
    await clock.runFor(1);
  }

  private bus(): MessageBus {
    const ends: (() => Promise<void>)[] = [];
    return {
      ensureTopic: (...args) => bus.ensureTopic(...args),
      send: (topic, message) => {
        if (this.isDead) throw new Error('it is dead');
        const receipt = bus.send(topic, message);
        if (!topic.startsWith('invoker')) return receipt;
        if (this.diesAfterSending) {
          this.isDead = true;
          for (const end of ends) void end();
        }
        return this.unacknowledged-- > 0
          ? { synced: () => Promise.reject(new Error('not acknowledged')) }
          : { synced: () => Promise.resolve() };
      },
      subscribe: async (topic, group, limits, handler) => {
        const subscription = await bus.subscribe(topic, group, limits, (delivery) =>
          handler({ ...delivery, done: () => this.isDead || delivery.done() }),
        );
        ends.push(() => subscription.close());
        return subscription;
      },
      lag: (...args) => bus.lag(...args),
      close: () => bus.close(),
    };
  }
}

/** Writes the agents' rows: a device each, the greatest epoch they know, and the placements they hold. */
async function tell(epoch: number, inHand: Record<string, InHand[]> = {}, memoryMiB = 40_000): Promise<void> {
  for (const invoker of ['invoker0', 'invoker1']) {
    const device = a100(`GPU of ${invoker}`, { memoryMiB });
    const row = nodeRow([device], [], { invoker, version: ++version, at: clock.now(), epoch });
    await setNode(state, { ...row, inHand: inHand[invoker] ?? [] });
  }
  await clock.runFor(1);
}

const activationId = 'a'.repeat(32);
const need = gpuNeedOf(readGpuAnnotation({ memoryMiB: 30_000 }), 60_000);
const message = (root: number): ActivationMessage => ({
  transid: ['tid', clock.now()],
  action: { path: 'alice', name: 'act', version: '0.0.1' },
  revision: '1-x',
  user: {
    ...{ subject: 'alice', namespace: { name: 'alice', uuid: 'u' }, authkey: { api_key: 'u:k' } },
    ...{ rights: [], limits: {} },
  },
  activationId,
  rootControllerIndex: { asString: String(root), instanceType: 'controller' },
  blocking: false,
  content: {},
  initArgs: [],
  lockedArgs: {},
  gpuNeed: need,
});
const submit = async (to: TestController, root: number): Promise<void> => {
  await clock.runUntil(to.scheduler.submit(message(root), need).synced());
  await clock.runFor(10);
};
const placement = (at: number): InHand => {
  const gpu = arrivals[at]?.message.gpu;
  if (gpu === undefined) throw new Error('it was not placed');
  return { activationId, at: gpu.at, epoch: gpu.epoch, version: gpu.version };
};
const record = (): Promise<void> =>
  clock.runUntil(
    store.createMany('activations', [
      activationDocument(
        {
          ...{ namespace: 'alice', name: 'act', version: '0.0.1', subject: 'alice', activationId, start: 1, end: 2 },
          ...{ response: { statusCode: 0 }, logs: [], publish: false, annotations: [] },
        },
        1,
      ),
    ]),
  ) as Promise<unknown> as Promise<void>;

let one: TestController;
let other: TestController;

beforeEach(async () => {
  clock = new SimulatedClock();
  bus = new EmbeddedBus({ clock });
  state = embeddedState(clock);
  store = simulatedStore({ clock, random, latencyMs: 0 });
  arrivals = [];
  version = 0;
  for (const invoker of ['invoker0', 'invoker1']) {
    await bus.ensureTopic(invoker, topicOptions);
    await bus.subscribe(invoker, invoker, { maxInFlight: 100 }, (delivery: Delivery) => {
      arrivals.push({ invoker, message: delivery.message as unknown as ActivationMessage });
      delivery.done();
    });
  }
  one = await clock.runUntil(new TestController(0).open());
  other = await clock.runUntil(new TestController(1).open());
  await one.decides(5);
  await other.decides(undefined);
  await tell(5);
});

/**
 * The first leader sends the other controller's activation to an invoker, and dies before it can acknowledge the task.
 */
async function deciderDies(): Promise<void> {
  one.diesAfterSending = true;
  await submit(other, 1);
  expect(arrivals).toHaveLength(1);
  expect([one.isDead, bus.lag('gpu', 'gpu')]).toEqual([true, 1]);
  await other.decides(6);
}

test('what an invoker has is not placed again by the next decider', async () => {
  await deciderDies();
  expect((await state.rows(gpuDeciderTable)).get('epoch')).toBe(6);
  // Agents that do not know the epoch yet may still accept placements of the older one, so the new leader waits.
  await tell(5, {});
  await clock.runFor(2000);
  expect(arrivals).toHaveLength(1);
  const [first] = arrivals;
  await tell(6, { [first?.invoker ?? '']: [placement(0)] });
  await clock.runFor(2000);
  expect([arrivals.length, other.scheduler.waiting, bus.lag('gpu', 'gpu')]).toEqual([1, 0, 0]);
});

test('what has a record is not placed again either', async () => {
  await deciderDies();
  await record();
  await tell(6);
  await clock.runFor(2000);
  expect([arrivals.length, other.scheduler.waiting, bus.lag('gpu', 'gpu')]).toEqual([1, 0, 0]);
});

test('what no invoker has taken is placed anew, and the copy that an agent gives back comes to nothing', async () => {
  await deciderDies();
  await tell(6);
  await clock.runFor(2000);
  expect(arrivals.map(({ message: { gpu } }) => gpu?.epoch)).toEqual([5, 6]);
  const late = { activation: arrivals[0]?.message as unknown as JsonObject, refused: 'it was decided in epoch 5' };
  bus.send('gpu1', late);
  await clock.runFor(2000);
  await tell(6, { invoker0: [placement(1)] });
  expect([arrivals.length, other.scheduler.waiting, bus.lag('gpu1', 'gpu1')]).toEqual([2, 0, 0]);
});

test('what its own controller had placed before it was started again is not placed again by another', async () => {
  await one.decides(undefined);
  await other.decides(6);
  await tell(6);
  // With too little memory the activation waits, so it is written to its controller's topic.
  await tell(6, {}, 10_000);
  await submit(other, 1);
  expect(other.scheduler.waiting).toBe(1);
  other.diesAfterSending = true;
  await tell(6);
  await clock.runFor(100);
  expect([arrivals.length, other.isDead, bus.lag('gpu1', 'gpu1')]).toEqual([1, true, 1]);
  await one.decides(7);
  const { invoker = '' } = arrivals[0] ?? {};
  const restarted = await clock.runUntil(new TestController(1).open());
  await clock.runFor(100);
  await tell(7, { [invoker]: [placement(0)] });
  await clock.runFor(2000);
  expect([arrivals.length, one.scheduler.waiting, restarted.scheduler.waiting]).toEqual([1, 0, 0]);
  expect([bus.lag('gpu', 'gpu'), bus.lag('gpu1', 'gpu1')]).toEqual([0, 0]);
});

test('nodes that are silent are not waited for', async () => {
  await deciderDies();
  await clock.runFor(6000);
  await tell(6);
  await clock.runFor(100);
  expect(arrivals).toHaveLength(2);
});

test('who does not know yet that another decides ends nobody whose time is over', async () => {
  await tell(5, {}, 10_000);
  await submit(other, 1);
  expect(one.scheduler.waiting).toBe(1);
  await one.decides(undefined, false);
  await clock.runFor(60_000);
  expect(one.scheduler.waiting).toBe(1);
  await one.decides(undefined);
  await other.decides(6);
  await tell(6, {}, 10_000);
  await clock.runFor(100);
  expect(one.scheduler.waiting).toBe(0);
  // The present leader ends the overdue activation.
  await clock.runFor(1000);
  expect(bus.lag('gpu', 'gpu')).toBe(0);
  const found = await clock.runUntil(store.get('activations', `alice/${activationId}`));
  expect(found).toMatchObject({ response: { statusCode: 3 } });
});

test('between two of its own epochs another may have decided: it begins anew', async () => {
  await tell(5, {}, 10_000);
  await submit(other, 1);
  expect(one.scheduler.waiting).toBe(1);
  // Another leader has placed and recorded the activation in between.
  await record();
  await one.decides(8);
  await tell(8);
  await clock.runFor(2000);
  expect([arrivals.length, one.scheduler.waiting, bus.lag('gpu', 'gpu')]).toEqual([0, 0, 0]);
});

test('what loses its decider while it is looked for its record goes to the next one', async () => {
  await deciderDies();
  await clock.runFor(100);
  await other.decides(undefined);
  const third = await clock.runUntil(new TestController(2).open());
  await third.decides(9);
  await tell(9);
  await clock.runFor(2000);
  expect(arrivals.map(({ message: { gpu } }) => gpu?.epoch)).toEqual([5, 9]);
  expect([other.scheduler.waiting, bus.lag('gpu', 'gpu')]).toEqual([0, 0]);
});

test('what is not acknowledged is sent again to the same invoker until it is, and ends then', async () => {
  one.unacknowledged = 2;
  await submit(other, 1);
  expect([arrivals.length, bus.lag('gpu', 'gpu')]).toEqual([1, 1]);
  await clock.runFor(5000);
  expect(arrivals).toHaveLength(3);
  expect(new Set(arrivals.map(({ invoker, message: { gpu } }) => JSON.stringify([invoker, gpu]))).size).toBe(1);
  expect([bus.lag('gpu', 'gpu'), one.scheduler.reserved]).toEqual([0, 1]);
});

test('an end that the decider never hears of frees its GPU once there is a record', async () => {
  await submit(other, 1);
  expect(one.scheduler.reserved).toBe(1);
  const untilSwept = async (inHand: Record<string, InHand[]>): Promise<void> => {
    for (let times = 0; times < 8; times++) {
      await clock.runFor(4000);
      await tell(5, inHand);
    }
  };
  await untilSwept({});
  expect(one.scheduler.reserved).toBe(1);
  await record();
  await untilSwept({});
  expect(one.scheduler.reserved).toBe(0);
});
