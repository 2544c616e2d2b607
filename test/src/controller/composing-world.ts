import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Durable } from '@gpuwhisk/common/bus/durable';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { readActivation } from '@gpuwhisk/common/entities/activation';
import { noSuchEntity } from '@gpuwhisk/common/errors';
import { loadConfig } from '@gpuwhisk/common/config';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { systemClock } from '@gpuwhisk/common/system/clock';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ComposingInvoker } from '@gpuwhisk/controller/compose/composing-invoker';
import type { ComposingDependencies } from '@gpuwhisk/controller/compose/composing-invoker';
import type { InvokeRequest } from '@gpuwhisk/controller/invoke/invoke-service';
import { simulatedActions } from '../api/simulated-actions.js';
import { SimulatedDisk } from '../simulation/simulated-disk.js';

const identity = {
  subject: 'alice',
  namespace: { name: 'alice', uuid: 'u' },
  authkey: { api_key: 'u:k' },
  rights: [],
  limits: {},
};
/** Never comes. */
export const never = new Promise<never>(() => undefined);

/** A stored action: a sequence where it has components, else one of code. */
export function action(name: string, components?: string[], conductor = false): WhiskAction {
  return {
    namespace: 'alice',
    name,
    exec:
      components === undefined
        ? { kind: 'nodejs:20', code: '', binary: false }
        : { kind: 'sequence', components: components.map((one) => `/alice/${one}`) },
    parameters: [],
    limits: { timeout: 1000, memory: 256, logs: 10, concurrency: 1 },
    version: '0.0.3',
    publish: false,
    annotations: [{ key: 'conductor', value: conductor }],
    updated: 0,
    revision: '1-a',
  };
}

/** The time of one life: nothing happens in it any more once it has stopped. */
class MortalClock implements Clock {
  private readonly timers = new Set<Timer>();
  private stopped = false;

  now = (): number => systemClock.now();
  monotonicMs = (): number => systemClock.monotonicMs();
  defer = (run: () => void): void => systemClock.defer(run);
  setBackgroundTimer = (delayMs: number, run: () => void): Timer => this.setTimer(delayMs, run);

  setTimer(delayMs: number, run: () => void): Timer {
    if (this.stopped) return { cancel: () => undefined };
    const timer = systemClock.setTimer(delayMs, () => {
      this.timers.delete(timer);
      run();
    });
    this.timers.add(timer);
    return {
      cancel: () => {
        this.timers.delete(timer);
        timer.cancel();
      },
    };
  }

  stop(): void {
    this.stopped = true;
    for (const timer of this.timers) timer.cancel();
  }
}

/** What sequences and compositions run on, over the lives of a controller. */
export class ComposingWorld {
  readonly actions = new Map(
    [
      action('a'),
      action('hang'),
      action('s', ['a', 'hang', 'a']),
      action('inner', ['hang']),
      action('outer', ['a', 'inner']),
      action('conductor', undefined, true),
    ].map((one) => [one.name, one]),
  );
  private readonly random = seededRandom(1);
  readonly disk = new SimulatedDisk(systemClock, this.random, 0);
  readonly store = simulatedStore({ clock: systemClock, random: this.random, latencyMs: 0 });
  private readonly lives: { durable: Durable; composing: ComposingInvoker; clock: MortalClock }[] = [];
  /** Components that were invoked, over all lives. */
  readonly invoked: string[] = [];
  /** When component `hang` ends: never unless it is told to. */
  hangs: Promise<void> = never;

  /** Starts a controller on what is there. */
  async rise(changes: Partial<ComposingDependencies> = {}): Promise<ComposingInvoker> {
    const { disk, random, store, invoked } = this;
    const clock = new MortalClock();
    const durable = await openDurable({ disk, folder: '/log', clock, random });
    await durable.bus.ensureTopic('compositions0', {
      durable: true,
      maxPendingMessages: 10,
      maxPendingBytes: Infinity,
    });
    const { answer } = simulatedActions({
      a: (payload) => payload,
      hang: (payload) => payload,
      conductor: (payload) =>
        Array.isArray(payload) || payload.hung !== undefined ? payload : { action: 'hang', params: { hung: 1 } },
    });
    const composing = new ComposingInvoker({
      bus: durable.bus,
      marks: durable.marks,
      store,
      clock,
      random,
      logger: createLogger({ level: 'silent' }),
      metrics: createMetrics(),
      recordLevels: loadConfig(),
      maxUnstoredBytes: 1_000_000,
      instance: 0,
      primitive: {
        invoke: async (request) => {
          invoked.push(request.action.name);
          if (request.action.name === 'hang') await this.hangs;
          return answer(request);
        },
      },
      resolver: {
        checkUsable: () => Promise.resolve(),
        resolve: (_, { name }) => {
          const found = this.actions.get(name);
          return found === undefined ? Promise.reject(noSuchEntity()) : Promise.resolve({ action: found });
        },
      },
      maxLength: 50,
      maxAtOnce: 3,
      ...changes,
    });
    await composing.open();
    this.lives.push({ durable, composing, clock });
    return composing;
  }

  /** The power goes; nothing of this life goes on. */
  crash(): void {
    this.disk.crash();
    this.store.crash();
    this.lives.pop()?.clock.stop();
  }

  /** A controller that has been closed is gone, and its log with it. */
  async leave(): Promise<void> {
    await this.lives.pop()?.durable.close();
  }

  /** Ends what still lives. */
  async close(): Promise<void> {
    for (const { composing, durable } of this.lives) {
      await composing.close(0);
      await durable.close();
    }
    await this.store.close();
  }

  /** What invokes an action, as a caller who does not wait. */
  request(name: string, changes: Partial<InvokeRequest> = {}): InvokeRequest {
    const found = this.actions.get(name) ?? action(name);
    return {
      identity,
      action: found,
      payload: { n: 1 },
      blocking: false,
      waitMs: 60_000,
      transactionId: 't',
      ...changes,
    };
  }

  /** Invokes an action without a waiting caller; gives its activation's id. */
  async submit(composing: ComposingInvoker, name: string): Promise<string> {
    const outcome = await composing.invoke(this.request(name));
    if (outcome.type !== 'accepted') throw new Error('not accepted');
    return outcome.activationId;
  }

  /** The record of an activation, if it is there. */
  async recorded(activationId: string): Promise<WhiskActivation | undefined> {
    try {
      return readActivation(await this.store.get('activations', `alice/${activationId}`));
    } catch (error) {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    }
  }

  /** The same once it is there. */
  record(activationId: string): Promise<WhiskActivation> {
    return seen('a record', () => this.recorded(activationId));
  }

  /** All records. */
  async records(): Promise<WhiskActivation[]> {
    const rows = await this.store.query('activations', {
      view: 'activations',
      startKey: ['alice', 0],
      endKey: ['alice', '\uffff'],
      limit: 100,
      includeDocs: true,
    });
    return rows.flatMap(({ doc }) => (doc === undefined ? [] : [readActivation(doc)]));
  }

  /** Once so many components hang. */
  untilHanging(count = 1): Promise<true> {
    const hanging = (): number => this.invoked.filter((name) => name === 'hang').length;
    return seen('a component hangs', () => hanging() >= count || undefined);
  }
}

/** What `look` gives once that is not undefined. */
export async function seen<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let tries = 0; tries < 500; tries++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((done) => setTimeout(done, 10));
  }
  throw new Error(`not seen: ${what}`);
}
