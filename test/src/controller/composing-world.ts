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
/** Never resolves. */
export const never = new Promise<never>(() => undefined);

/** A stored action: a sequence if it has components, otherwise an action with code. */
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

/** The clock of one controller process: after stop() no timer of this process runs. */
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

/** Store, log and actions that outlive the crashes and restarts of a controller. */
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
  /** Names of invoked components, over all controller processes. */
  readonly invoked: string[] = [];
  /** Resolves when component `hang` may end; default: never. */
  hangs: Promise<void> = never;

  /** Starts a controller on the present contents of disk and store. */
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

  /** Simulates a power loss: unsynced data is lost, and the controller process ends. */
  crash(): void {
    this.disk.crash();
    this.store.crash();
    this.lives.pop()?.clock.stop();
  }

  /** Removes the controller, which has been closed, and closes its log. */
  async leave(): Promise<void> {
    await this.lives.pop()?.durable.close();
  }

  /** Closes the remaining controllers and the store. */
  async close(): Promise<void> {
    for (const { composing, durable } of this.lives) {
      await composing.close(0);
      await durable.close();
    }
    await this.store.close();
  }

  /** A request to invoke an action without waiting for its result. */
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

  /** Invokes an action without waiting for its result; returns the activation id. */
  async submit(composing: ComposingInvoker, name: string): Promise<string> {
    const outcome = await composing.invoke(this.request(name));
    if (outcome.type !== 'accepted') throw new Error('not accepted');
    return outcome.activationId;
  }

  /** The record of an activation, or undefined if there is none. */
  async recorded(activationId: string): Promise<WhiskActivation | undefined> {
    try {
      return readActivation(await this.store.get('activations', `alice/${activationId}`));
    } catch (error) {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    }
  }

  /** The record of an activation; waits until it is stored. */
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

  /** Resolves once component `hang` has been invoked `count` times. */
  untilHanging(count = 1): Promise<true> {
    const hanging = (): number => this.invoked.filter((name) => name === 'hang').length;
    return seen('a component hangs', () => hanging() >= count || undefined);
  }
}

/** Calls `look` until its result is defined, and returns the result; throws after five seconds. */
export async function seen<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (let tries = 0; tries < 500; tries++) {
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((done) => setTimeout(done, 10));
  }
  throw new Error(`not seen: ${what}`);
}
