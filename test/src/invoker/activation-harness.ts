import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { EmbeddedBus } from '@gpuwhisk/common/bus/embedded-bus';
import { readActivation } from '@gpuwhisk/common/entities/activation';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { loadConfig } from '@gpuwhisk/common/config';
import { createArgumentUnlock } from '@gpuwhisk/common/entities/parameter-encryption';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import type { JsonObject } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ActivationRun } from '@gpuwhisk/invoker/activation/activation-run';
import type { InvokerContext } from '@gpuwhisk/invoker/activation/invoker-context';
import type { RunnableAction } from '@gpuwhisk/invoker/activation/action-loader';
import type { InitRequest, RunRequest } from '@gpuwhisk/invoker/containers/container-factory';
import { createSimulatedFactory } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { GuestAnswer } from '@gpuwhisk/invoker/containers/simulated-factory';
import { ContainerPool } from '@gpuwhisk/invoker/pool/container-pool';
import { storeLike } from '../simulation/delegates.js';
import { SimulatedClock } from '../simulation/simulated-clock.js';
import { steppedClock } from '../simulation/troubles.js';

const kind = 'nodejs:20';
const logger = createLogger({ level: 'silent' });
const resultBounds = { maxResultBytes: 200, truncationBytes: 100 };
export const key128 = 'ra1V6AfOYAv0jCzEdufIFA==';
export const success: GuestAnswer = { then: { do: 'result', value: { ok: true } } };
/** An action that the tests invoke. */
export const action: RunnableAction = {
  namespace: 'guest/package',
  name: 'hello',
  version: '0.0.7',
  revision: '1-a',
  kind,
  runtime: kind,
  main: 'main',
  limits: { timeout: 1000, memory: 128, logs: 1, concurrency: 1 },
  annotations: [],
  requirements: [],
  warm: { imports: [], cuda: false },
  code: () => Promise.resolve({ code: 'the code', binary: false }),
  isCurrent: () => Promise.resolve(true),
};
export const message: ActivationMessage = {
  transid: ['tid', 0],
  action: { path: 'guest/package', name: 'hello' },
  revision: '1-a',
  user: {
    subject: 'guest',
    namespace: { name: 'caller', uuid: 'u' },
    authkey: { api_key: 'u:key' },
    rights: [],
    limits: {},
  },
  activationId: 'a',
  rootControllerIndex: { asString: '0', instanceType: 'controller' },
  blocking: false,
  content: { name: 'Ada', SECRET: 'shh', LIST: [1] },
  initArgs: ['SECRET', 'LIST'],
  lockedArgs: {},
};

/** Hands activations to a pool of simulated containers. */
export class ActivationHarness {
  readonly base = new SimulatedClock();
  readonly clock = steppedClock(this.base);
  readonly store = simulatedStore({ clock: this.clock, random: seededRandom(1) });
  /** Answers of the container, and the requests that it received. */
  onInit: (request: InitRequest) => GuestAnswer = () => success;
  onRun: (request: RunRequest) => GuestAnswer = () => success;
  readonly inits: InitRequest[] = [];
  readonly runs: RunRequest[] = [];
  readonly acknowledged: JsonObject[] = [];
  /** Time until a start mark and a record are durable, ms. */
  markSyncMs = 0;
  recordMs = 0;
  closing = false;
  /** Whether runs may begin. */
  mayBegin = true;
  /** Which containers can unload, and whether they end late runs by themselves. */
  unloading: 'all' | 'none' = 'all';
  endsLate = false;
  private readonly bus = new EmbeddedBus({ clock: this.clock });
  private readonly factory = createSimulatedFactory(this.factoryOptions());
  readonly pool = new ContainerPool(
    this.factory,
    this.clock,
    {
      memoryMiB: 512,
      maxStarting: 8,
      pauseGraceMs: 1e6,
      idleContainerMs: 1e6,
      stemCells: [],
      stemCellsOnDemand: false,
      devices: { claim: () => true, release: () => undefined, missingMiB: () => 0 },
    },
    logger,
  );
  private readonly context = this.invokerContext();

  static async open(): Promise<ActivationHarness> {
    const harness = new ActivationHarness();
    const { bus, acknowledged } = harness;
    await bus.ensureTopic('completed0', { durable: false, maxPendingMessages: 100, maxPendingBytes: Infinity });
    await bus.subscribe('completed0', 'test', { maxInFlight: 100 }, (delivery) => acknowledged.push(delivery.message));
    await harness.factory.start();
    return harness;
  }

  /** Hands an activation to the pool; resolves when its record is durable. */
  submit(changes: Partial<ActivationMessage> = {}, of: RunnableAction = action): Promise<void> {
    const sent: ActivationMessage = { ...message, transid: ['tid', this.clock.now()], ...changes };
    return new Promise((stored, reject) => {
      const retry = (run: ActivationRun): void => this.pool.submit(run);
      const giveBack = (reason: string): void => reject(new Error(reason));
      this.pool.submit(new ActivationRun(this.context, sent, of, { stored, retry, giveBack }));
    });
  }

  /** Runs an activation and reads its record. */
  async run(changes: Partial<ActivationMessage> = {}, of?: RunnableAction): Promise<WhiskActivation> {
    await this.base.runUntil(this.submit(changes, of));
    const id = changes.activationId ?? message.activationId;
    return readActivation(await this.base.runUntil(this.store.get('activations', `caller/${id}`)));
  }

  private factoryOptions(): Parameters<typeof createSimulatedFactory>[0] {
    const get = { unloading: () => this.unloading, endsLate: () => this.endsLate };
    return {
      clock: this.clock,
      random: seededRandom(1),
      kinds: [kind],
      startMs: [100, 100],
      get unloading() {
        return get.unloading();
      },
      get endsLate() {
        return get.endsLate();
      },
      guest: {
        init: (request) => this.onInit((this.inits.push(request), request)),
        run: (request) => this.onRun((this.runs.push(request), request)),
      },
    };
  }

  private invokerContext(): InvokerContext {
    const { clock, bus, store } = this;
    return {
      instance: { instance: 0, userMemory: '', instanceType: 'invoker', tags: [], dedicatedNamespaces: [] },
      bus,
      records: new RecordWriter(
        storeLike(store, {
          createMany: async (database, documents) => {
            await sleep(clock, this.recordMs);
            return store.createMany(database, documents);
          },
        }),
        clock,
        logger,
      ),
      marks: {
        startedBefore: () => false,
        mark: () => () => new Promise((resolve) => clock.setTimer(this.markSyncMs, resolve)),
      },
      clock,
      logger,
      metrics: createMetrics(),
      resultBounds,
      recordLevels: loadConfig(),
      unlockArguments: createArgumentUnlock({ keys: { 'aes-128': [key128] } }),
      isClosing: () => this.closing,
      mayBegin: () => this.mayBegin,
    };
  }
}

/** An annotation of a record. */
export const annotation = (record: WhiskActivation, key: string): unknown => parameterValue(record.annotations, key);
