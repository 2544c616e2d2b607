import type { MessageBus, Subscription } from '@gpuwhisk/common/bus/message-bus';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import type { PingMessage, InvokerInstanceId, ActivationMessage } from '@gpuwhisk/common/messages';
import type { Clock, Timer } from '@gpuwhisk/common/system/clock';
import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionDocument } from '@gpuwhisk/common/entities/action';
import { newActivationId } from '@gpuwhisk/common/ids';
import { DocumentConflictError, NoDocumentError } from '@gpuwhisk/common/store/artifact-store';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Random } from '@gpuwhisk/common/system/random';
import type { BalancedInvoker } from './sharding-balancer.js';

/** Dependencies of InvokerSupervision. */
interface SupervisionDependencies {
  bus: MessageBus;
  clock: Clock;
  logger: Logger;
  /** The controller's number. */
  instance: number;
  /** Sends a test activation to an invoker; its outcome tells whether the invoker works. */
  test: (invoker: number) => void;
  /** Whether pings can be read now. Silence during an outage of the broker counts for no invoker. Absent: always. */
  isReadable?: () => boolean;
}

/** The topic of invokers' pings. */
export const healthTopic = 'health';
const maxInFlight = 1000;
const maxPendingMessages = 10_000;
/**
 * How often an invoker that is not up is tested, ms; after a success it is tested again at once. A silent invoker that never
 * was up is forgotten.
 */
const testMs = 10_000;
const lookMs = 1000;
/** Upper bound of invoker numbers; messages with higher numbers are ignored. */
const maxInvokers = 10_000;

/** Tracks which invokers are up, from their pings and the outcomes of activations (OpenWhisk's InvokerSupervision). */
export class InvokerSupervision {
  private readonly states = new Map<number, InvokerState>();
  private readonly testedMs = new Map<number, number>();
  private readonly lastHealth = new Map<number, Health>();
  private readonly wereUp = new Set<number>();
  private subscription: Subscription | undefined;
  private timer: Timer | undefined;
  private list: BalancedInvoker[] = [];
  private openedMs = Infinity;
  private lookedMs = 0;

  constructor(private readonly dependencies: SupervisionDependencies) {}

  async open(): Promise<void> {
    const { bus, instance } = this.dependencies;
    await bus.ensureTopic(healthTopic, { durable: false, maxPendingMessages, maxPendingBytes: Infinity });
    this.subscription = await bus.subscribe(healthTopic, `${healthTopic}${instance}`, { maxInFlight }, (delivery) => {
      this.take(delivery.message);
      delivery.done();
    });
    this.openedMs = this.lookedMs = this.dependencies.clock.monotonicMs();
    this.look();
  }

  async close(): Promise<void> {
    this.timer?.cancel();
    await this.subscription?.close();
  }

  /**
   * Every invoker that has ever been up, by number; numbers between them are entries that are not usable. Invokers that were
   * never up are left out, as a ping with a high number would make the list long.
   */
  invokers(): readonly BalancedInvoker[] {
    return this.list;
  }

  /** `{"invoker0/0":"up"}`. */
  health(): Record<string, Health> {
    const nowMs = this.dependencies.clock.monotonicMs();
    const byNumber = [...this.states].sort(([one], [other]) => one - other);
    return Object.fromEntries(byNumber.map(([, state]) => [state.name, state.health(nowMs)]));
  }

  /** Time since an invoker's last ping, ms; without any ping, since this controller began to consume pings. */
  silenceMs(invoker: number): number {
    const nowMs = this.dependencies.clock.monotonicMs();
    return this.states.get(invoker)?.silenceMs(nowMs) ?? nowMs - this.openedMs;
  }

  /** Notes the outcome of an activation, or its time-out, for its invoker. */
  finished(invoker: number, outcome: FinishedResult): void {
    const state = this.states.get(invoker);
    if (state === undefined) return;
    const nowMs = this.dependencies.clock.monotonicMs();
    const before = state.health(nowMs);
    state.finished(outcome, nowMs);
    const now = state.health(nowMs);
    if (now !== before) this.update();
    // Failures count until later outcomes have displaced them, and an invoker that is not up gets tests only.
    if (outcome === 'success' && isInDoubt(now)) this.test(invoker, nowMs);
  }

  private take(message: JsonObject): void {
    if (!isPing(message)) {
      this.dependencies.logger.warn('a message on topic health that is no ping was skipped');
      return;
    }
    const ping = message as unknown as PingMessage;
    const { instance } = ping.name;
    const nowMs = this.dependencies.clock.monotonicMs();
    const state = this.states.get(instance) ?? new InvokerState(ping);
    this.states.set(instance, state);
    const isBack = state.pinged(ping, nowMs);
    if (isBack) this.test(instance, nowMs);
    if (state.health(nowMs) !== this.lastHealth.get(instance)) this.update();
  }

  private look(): void {
    const { clock, isReadable } = this.dependencies;
    const nowMs = clock.monotonicMs();
    if (isReadable?.() === false) {
      for (const state of this.states.values()) state.ignoreOutage(nowMs - this.lookedMs);
      this.openedMs += nowMs - this.lookedMs;
    }
    this.lookedMs = nowMs;
    this.update();
    for (const [instance, state] of this.states) {
      const health = state.health(nowMs);
      if (health === 'down' && !this.wereUp.has(instance)) {
        this.states.delete(instance);
        this.testedMs.delete(instance);
        this.lastHealth.delete(instance);
        continue;
      }
      const isDue = nowMs - (this.testedMs.get(instance) ?? -Infinity) >= testMs;
      if (isInDoubt(health) && isDue) this.test(instance, nowMs);
    }
    this.timer = clock.setBackgroundTimer(lookMs, () => this.look());
  }

  private test(invoker: number, nowMs: number): void {
    this.testedMs.set(invoker, nowMs);
    this.dependencies.test(invoker);
  }

  private update(): void {
    const { clock, logger } = this.dependencies;
    const nowMs = clock.monotonicMs();
    for (const [instance, state] of this.states) {
      const health = state.health(nowMs);
      if (health !== this.lastHealth.get(instance)) {
        // A new one is unhealthy until its first test.
        const level = this.wereUp.has(instance) ? 'warn' : 'info';
        logger[level]({ invoker: state.name, health }, 'an invoker changed its state');
      }
      this.lastHealth.set(instance, health);
      if (health === 'up') this.wereUp.add(instance);
    }
    const count = Math.max(-1, ...this.wereUp) + 1;
    this.list = Array.from({ length: count }, (_, instance) => {
      const state = this.states.get(instance);
      const isUsable = state !== undefined && this.lastHealth.get(instance) === 'up';
      return { instance, memoryMiB: state?.memoryMiB ?? 0, isUsable };
    });
  }
}

function isPing({ name }: JsonObject): boolean {
  if (!isJsonObject(name)) return false;
  const { instance, userMemory } = name;
  return (
    Number.isInteger(instance) &&
    Number(instance) >= 0 &&
    Number(instance) < maxInvokers &&
    typeof userMemory === 'string'
  );
}

/** The states of an invoker, in OpenWhisk's words. */
type Health = 'up' | 'unhealthy' | 'unresponsive' | 'down';

/** Whether tests tell if an invoker of this state works. */
const isInDoubt = (health: Health): boolean => health === 'unhealthy' || health === 'unresponsive';

/** The outcome of an activation, as far as it concerns the invoker. */
type FinishedResult = 'success' | 'system error' | 'time-out';

/** An invoker is down after this time without a ping, ms. */
const silentMs = 10_000;
/** How many outcomes are kept, and how many of them may be bad. */
const keptOutcomes = 10;
const toleratedFailures = 3;

/** The state of one invoker as this controller sees it. */
class InvokerState {
  private outcomes: FinishedResult[] = [];
  private current: Exclude<Health, 'down'> = 'unhealthy';
  private lastPingMs = -Infinity;
  private isEnabled = true;
  private id: InvokerInstanceId;

  constructor({ name }: PingMessage) {
    this.id = name;
  }

  get instance(): InvokerInstanceId {
    return this.id;
  }

  /** `invoker0/name`. */
  get name(): string {
    const { instance, uniqueName, displayedName } = this.id;
    return [`invoker${instance}`, uniqueName, displayedName].filter((part) => part !== undefined).join('/');
  }

  /** Memory for the invoker's containers, MiB. */
  get memoryMiB(): number {
    const match = /^(\d+) *(B|KB|MB|GB)?$/i.exec(this.id.userMemory);
    const unit = { B: 1 / (1024 * 1024), KB: 1 / 1024, MB: 1, GB: 1024 }[(match?.[2] ?? 'B').toUpperCase()];
    return Math.floor(Number(match?.[1] ?? 0) * (unit ?? 0));
  }

  health(nowMs: number): Health {
    return this.isEnabled && nowMs - this.lastPingMs < silentMs ? this.current : 'down';
  }

  /** Excludes from the silence a period in which pings could not be read, ms. */
  ignoreOutage(ms: number): void {
    this.lastPingMs += ms;
  }

  /** Time since the invoker's last ping, ms. */
  silenceMs(nowMs: number): number {
    return nowMs - this.lastPingMs;
  }

  /** Notes a ping; returns whether the invoker was down before. */
  pinged({ name, isEnabled = true }: PingMessage, nowMs: number): boolean {
    const wasDown = this.health(nowMs) === 'down';
    this.id = name;
    this.isEnabled = isEnabled;
    this.lastPingMs = nowMs;
    if (!wasDown || !isEnabled) return false;
    this.current = 'unhealthy';
    this.outcomes = [];
    return true;
  }

  /** Notes the outcome of one of the invoker's activations. */
  finished(outcome: FinishedResult, nowMs: number): void {
    if (this.health(nowMs) === 'down') return;
    this.outcomes = [...this.outcomes, outcome].slice(-keptOutcomes);
    const failures = (kind: FinishedResult): number => this.outcomes.filter((other) => other === kind).length;
    if (failures('system error') > toleratedFailures) this.current = 'unhealthy';
    else if (failures('time-out') > toleratedFailures) this.current = 'unresponsive';
    // An invoker that is not up becomes up only after a successful outcome.
    else if (this.current !== 'up' && !this.outcomes.includes('success')) return;
    else this.current = 'up';
  }
}

/** Dependencies of openHealthTest. */
interface HealthTestDependencies {
  bus: MessageBus;
  store: ArtifactStore;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** The controller's number. */
  instance: number;
  /** Kind and memory (MiB) of the test action. */
  kind: string;
  memoryMiB: number;
}

const namespace = 'whisk.system';
const transactionId = 'sid_invokerHealth';

/**
 * Stores the test action of the health check. Resolves with the function that sends one activation of the action to an
 * invoker.
 */
export async function openHealthTest(dependencies: HealthTestDependencies): Promise<(invoker: number) => void> {
  const { bus, clock, random, logger, instance } = dependencies;
  const name = `invokerHealthTestAction${instance}`;
  const revision = await storeAction(dependencies, name);
  return (invoker) => {
    const message: ActivationMessage = {
      transid: [transactionId, clock.now()],
      action: { path: namespace, name, version: '0.0.1' },
      revision,
      user: {
        subject: namespace,
        namespace: { name: namespace, uuid: namespace },
        authkey: { api_key: '' },
        rights: [],
        limits: { storeActivations: false },
      },
      activationId: newActivationId(clock.now(), random),
      rootControllerIndex: { asString: String(instance), instanceType: 'controller' },
      blocking: true,
      content: {},
      initArgs: [],
      lockedArgs: {},
    };
    try {
      bus.send(`invoker${invoker}`, message as unknown as JsonObject);
    } catch (error) {
      logger.error({ invoker, error: String(error) }, 'an invoker could not be tested');
    }
  };
}

/** The revision of the test action, which may have been stored before a restart. */
async function storeAction({ store, clock, kind, memoryMiB }: HealthTestDependencies, name: string): Promise<string> {
  const action: WhiskAction = {
    namespace,
    name,
    exec: { kind, code: 'function main(params) { return params; }', binary: false },
    parameters: [],
    limits: { timeout: 60_000, memory: memoryMiB, logs: 0, concurrency: 1 },
    version: '0.0.1',
    publish: false,
    annotations: [],
    updated: clock.now(),
    revision: '',
  };
  try {
    const { _rev: known } = await store.get('whisks', `${namespace}/${name}`);
    action.revision = String(known);
  } catch (error) {
    if (!(error instanceof NoDocumentError)) throw error;
  }
  try {
    return await store.put('whisks', actionDocument(action));
  } catch (error) {
    if (!(error instanceof DocumentConflictError)) throw error;
    // A concurrent start has stored the action.
    return String((await store.get('whisks', `${namespace}/${name}`))._rev);
  }
}
