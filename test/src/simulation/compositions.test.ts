// Seeded histories of sequences and compositions, with messages delayed and doubled and power losses at any moment.
import { expect, test } from '@jest/globals';
import { loadConfig } from '@gpuwhisk/common/config';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { MessageBus, Receipt } from '@gpuwhisk/common/bus/message-bus';
import { defaultBusFaults, simulatedBus } from '@gpuwhisk/common/testing/simulated-bus';
import type { WhiskActivation } from '@gpuwhisk/common/entities/activation';
import { readActivation } from '@gpuwhisk/common/entities/activation';
import type { JsonObject } from '@gpuwhisk/common/json';
import { createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { SimulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { simulatedStore } from '@gpuwhisk/common/testing/simulated-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Random } from '@gpuwhisk/common/system/random';
import { seededRandom } from '@gpuwhisk/common/system/random';
import { ComposingInvoker } from '@gpuwhisk/controller/compose/composing-invoker';
import type { InvokeOutcome, InvokeRequest } from '@gpuwhisk/controller/invoke/invoke-service';
import { simulatedActions } from '../api/simulated-actions.js';
import { composites, identity, whiskAction } from './composite-actions.js';
import { busLike } from './delegates.js';
import { SimulatedClock } from './simulated-clock.js';
import { SimulatedDisk } from './simulated-disk.js';

const logger = createLogger({ level: 'silent' });
const metrics = createMetrics();
const recordLevels = loadConfig();
/** Virtual time in which all work must end, ms. */
const settleMs = 60_000;
/** Longest time by which a completed answer may precede its record, ms; also for the mark of a blocking one. */
const graceMs = 50;

/** Observations of one sequence or composition. */
interface Seen {
  /** Numbers of the lives in which it invoked components. */
  lives: Set<number>;
  /** Time of its first invocation of a component, ms. */
  sinceMs: number;
}

interface Answer {
  outcome: InvokeOutcome;
  atMs: number;
}

class CompositeHistory {
  readonly clock = new SimulatedClock();
  readonly random: Random;
  readonly answers: Answer[] = [];
  readonly seen = new Map<string, Seen>();
  private readonly disk: SimulatedDisk;
  private readonly store: SimulatedStore;
  private readonly crashesMs: number[] = [];
  private readonly actions = composites();
  /** Activations whose begin mark is not awaited on disk: blocking and nested ones. */
  readonly unsynced = new Set<string>();
  private life = 0;
  private serial = 0;
  private bus: MessageBus | undefined;

  constructor(seed: number) {
    this.random = seededRandom(seed);
    this.disk = new SimulatedDisk(this.clock, this.random);
    this.store = simulatedStore({ clock: this.clock, random: this.random });
  }

  async play(): Promise<void> {
    for (let crashes = 0; crashes < 3; crashes++) {
      const composing = await this.clock.runUntil(this.rise());
      const events = this.random.uint32() % 20;
      for (let event = 0; event < events; event++) {
        this.call(composing);
        await this.clock.runFor(this.random.uint32() % 40);
      }
      this.crash();
    }
    await this.clock.runUntil(this.rise());
    await this.clock.runFor(settleMs);
  }

  private async rise(): Promise<ComposingInvoker> {
    const { clock, random, disk, store } = this;
    const life = ++this.life;
    const durable = await openDurable({ disk, folder: '/log', clock, random });
    const noted = busLike(durable.bus, {
      send: (topic, message) => this.noteSent(durable.bus.send(topic, message), message),
    });
    const bus = simulatedBus(noted, { clock, random, faults: { ...defaultBusFaults, withholdMs: 500 } });
    this.bus = bus;
    await bus.ensureTopic('compositions0', { durable: true, maxPendingMessages: 1000, maxPendingBytes: Infinity });
    const composing = new ComposingInvoker({
      ...{ bus, marks: durable.marks, store, clock, random, logger, metrics, recordLevels, instance: 0 },
      ...{ maxLength: 5, maxAtOnce: 1000, maxUnstoredBytes: Infinity },
      primitive: { invoke: (request) => this.runComponent(request, life) },
      resolver: {
        checkUsable: () => Promise.resolve(),
        resolve: (_, { name }) => Promise.resolve({ action: this.actions.get(name) ?? whiskAction(name) }),
      },
    });
    await composing.open();
    return composing;
  }

  private async runComponent(request: InvokeRequest, life: number): Promise<InvokeOutcome> {
    const { clock, random, seen } = this;
    const cause = request.cause ?? '';
    const entry = seen.get(cause) ?? { lives: new Set(), sinceMs: clock.monotonicMs() };
    entry.lives.add(life);
    seen.set(cause, entry);
    await sleep(clock, random.uint32() % 60);
    return simulatedActions({
      add: () => ({ n: 1 }),
      fail: () => ({ error: 'on purpose' }),
      conductor: (payload) => (Array.isArray(payload) || payload.n !== undefined ? payload : { action: 'two' }),
    }).answer(request);
  }

  private noteSent(receipt: Receipt, { activationId, blocking, cause }: JsonObject): Receipt {
    if (blocking === true || cause !== undefined) this.unsynced.add(String(activationId));
    return receipt;
  }

  private call(composing: ComposingInvoker): void {
    const { random, clock, answers } = this;
    const names = ['two', 'nested', 'failing', 'conductor', 'around'];
    const action = this.actions.get(names[random.uint32() % names.length] ?? '') ?? whiskAction('two');
    const blocking = random.uint32() % 2 === 0;
    const waitMs = random.uint32() % 2 === 0 ? 20 : 60_000;
    const transactionId = `t${++this.serial}`;
    void composing.invoke({ identity, action, payload: {}, blocking, waitMs, transactionId }).then((outcome) => {
      answers.push({ outcome, atMs: clock.monotonicMs() });
    });
  }

  private crash(): void {
    this.crashesMs.push(this.clock.monotonicMs());
    this.clock.dropAll();
    this.disk.crash();
    this.store.crash();
  }

  /** Whether a power loss followed that moment within the grace. */
  excused(atMs: number): boolean {
    return this.crashesMs.some((crashMs) => crashMs >= atMs && crashMs - atMs <= graceMs);
  }

  async record(activationId: string): Promise<WhiskActivation | undefined> {
    const found = this.store.get('activations', `alpha/${activationId}`).catch((error: unknown) => {
      if (error instanceof NoDocumentError) return undefined;
      throw error;
    });
    const document = await this.clock.runUntil(found);
    return document && readActivation(document);
  }

  get unfinished(): number {
    return this.bus?.lag('compositions0', 'compositions0') ?? 0;
  }
}

/** Plays the history of one seed and returns the broken promises. */
async function problemsOf(history: CompositeHistory): Promise<string[]> {
  await history.play();
  const problems: string[] = [];
  for (const { outcome, atMs } of history.answers) {
    if (outcome.type === 'accepted') {
      if ((await history.record(outcome.activationId)) === undefined) {
        problems.push(`${outcome.activationId} was accepted and has no record`);
      }
      continue;
    }
    const { activation } = outcome;
    const record = await history.record(activation.activationId);
    if (JSON.stringify(record) !== JSON.stringify(activation) && !history.excused(atMs)) {
      problems.push(`${activation.activationId} was answered otherwise than it was recorded`);
    }
  }
  for (const [id, { lives, sinceMs }] of history.seen) {
    if (history.unsynced.has(id) && history.excused(sinceMs)) continue;
    if (lives.size > 1) problems.push(`${id} was run in lives ${[...lives].join(', ')}`);
    if ((await history.record(id)) === undefined) problems.push(`${id} had begun and has no record`);
  }
  if (history.unfinished > 0) problems.push(`${history.unfinished} messages are not done`);
  return problems;
}

test('histories of sequences, compositions and power cuts keep every promise', async () => {
  const totals = { answers: 0, seen: 0, stopped: 0, rerun: 0 };
  for (let seed = 1; seed <= 60; seed++) {
    const history = new CompositeHistory(seed);
    expect({ seed, problems: await problemsOf(history) }).toEqual({ seed, problems: [] });
    totals.answers += history.answers.length;
    totals.seen += history.seen.size;
    for (const id of history.seen.keys()) {
      const text = JSON.stringify((await history.record(id))?.response.result);
      if (text?.includes('The controller stopped')) totals.stopped++;
    }
  }
  // The histories test the promises only if all these events happened in them.
  expect(totals.answers).toBeGreaterThan(200);
  expect(totals.seen).toBeGreaterThan(500);
  expect(totals.stopped).toBeGreaterThan(50);
}, 60_000);
