import { ApiError } from '@gpuwhisk/common/errors';
import { nameLease } from '@gpuwhisk/common/state/held-name';
import { lifeSigns } from '@gpuwhisk/common/state/instance-ids';
import { ProcessRegistry } from '@gpuwhisk/common/state/process-registry';
import type { ProcessSort, RegisteredProcess } from '@gpuwhisk/common/state/process-registry';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type { ClusterState } from '@gpuwhisk/common/state/cluster-state';
import { DocumentConflictError } from '@gpuwhisk/common/store/artifact-store';
import { isRecorded, isRecordKept, recordedCall } from '@gpuwhisk/common/activations/record-policy';
import type { RecordLevels } from '@gpuwhisk/common/activations/record-policy';
import type { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import type { Delivery, MessageBus, TopicOptions } from '@gpuwhisk/common/bus/message-bus';
import { ActivationStatus, activationDocument } from '@gpuwhisk/common/entities/activation';
import { MalformedError } from '@gpuwhisk/common/entities/malformed';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { Logger } from '@gpuwhisk/common/logging';
import { completedTopic, unplacedTopic, readActivationMessage } from '@gpuwhisk/common/messages';
import type { ActivationMessage, CompletionMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { Clock } from '@gpuwhisk/common/system/clock';
import { EarlierActivations } from '../entitlement/in-flight.js';
import type { EarlierActivationsDependencies } from '../entitlement/in-flight.js';
import { refusedRecord } from '../invoke/activation-message.js';

/** How far a retirement is. */
interface RetirementProgress extends TakeoverCounts {
  name: string;
  number: number;
  /** Nothing is left of it. */
  isSettled: boolean;
}

/** Dependencies of Retirements. */
export interface RetirementDependencies extends Omit<TakeoverDependencies, 'isClosing'> {
  state: ClusterState;
  inFlight: EarlierActivationsDependencies['inFlight'];
  /** How long an invoker has sent no ping, ms. */
  silenceMs: (invoker: number) => number;
  /** The controllers that are there, `controller<N>`. */
  controllers: () => ReadonlySet<string>;
}

/** A process that was heard of less long ago is alive, ms. */
const aliveMs = 10_000;
/** The name is kept for so long while the retirement is noted, ms: longer than the two requests to the store may take. */
const leaseMs = 90_000;
/** How long after its last sign of life a process may have begun something, ms: the gap between two signs, and the difference of clocks. */
const lastWordMs = 2500;

/** Retires processes that never come back: what they left is settled, and they begin nothing should they return. */
export class Retirements {
  /** By sort and number. */
  private readonly running = new Map<string, RetirementProgress>();
  /** By sort and name: one is answered at a time. */
  private readonly asked = new Map<string, Promise<RetirementProgress>>();
  private closing = false;

  constructor(private readonly dependencies: RetirementDependencies) {}

  close(): void {
    this.closing = true;
  }

  /**
   * Retires the process of this name, or goes on with that, and tells how far it is. Throws ApiError: 404 for a name that none
   * has, 409 where the process is alive or another controller is at it, 503 where the cluster's state cannot be asked.
   */
  retire(sort: ProcessSort, name: string): Promise<RetirementProgress> {
    const key = `${sort} ${name}`;
    const asked = this.asked.get(key) ?? this.answer(sort, name).finally(() => this.asked.delete(key));
    this.asked.set(key, asked);
    return asked;
  }

  private async answer(sort: ProcessSort, name: string): Promise<RetirementProgress> {
    const registry = new ProcessRegistry(this.dependencies.store, sort);
    const process = await this.find(registry, name);
    const known = this.running.get(`${sort} ${process.number}`);
    if (known !== undefined) return known;
    const progress = { name, number: process.number, moved: 0, stopped: 0, isSettled: false };
    if (process.retired?.isSettled) return { ...progress, isSettled: true };
    const silentSinceMs = process.retired?.silentSinceMs ?? (await this.end(registry, process));
    await this.begin(registry, process, silentSinceMs);
    this.running.set(`${sort} ${process.number}`, progress);
    void this.settle(registry, progress, silentSinceMs, process.retired !== undefined);
    return progress;
  }

  private async find(registry: ProcessRegistry, name: string): Promise<RegisteredProcess> {
    const named = (await registry.all()).filter((process) => process.name === name);
    // One that was retired before may have had the name, too.
    const found = named.find(({ retired }) => retired === undefined || !retired.isSettled) ?? named.at(-1);
    if (found === undefined) throw new ApiError(404, `There is no '${name}' among the ${registry.sort}.`);
    const by = found.retired?.takenOverBy;
    const { controllers, instance } = this.dependencies;
    if (by !== undefined && by !== instance && !found.retired?.isSettled && controllers().has(`controller${by}`)) {
      throw new ApiError(409, `controller${by} takes over what '${name}' left: ask that one, or wait.`);
    }
    return found;
  }

  /** Makes sure that the process is gone. Gives when it was last there. */
  private async end({ sort }: ProcessRegistry, { name, number }: RegisteredProcess): Promise<number> {
    const { state, clock, silenceMs, controllers, instance } = this.dependencies;
    const alive = (how: string): ApiError =>
      new ApiError(409, `'${name}' of the ${sort} is alive: ${how}. Stop it first.`);
    try {
      const nowMs = clock.now();
      const silent = sort === 'invokers' ? silenceMs(number) : Infinity;
      if (silent < aliveMs) throw alive(`it was heard ${Math.floor(silent / 1000)} s ago`);
      if (sort === 'controllers' && controllers().has(`controller${number}`)) throw alive('it serves');
      const signs = await state.rows(lifeSigns(sort));
      const lastMs = Math.max(Number(signs.get(name) ?? 0), nowMs - silent);
      if (nowMs - lastMs < aliveMs) throw alive(`it was there ${Math.floor((nowMs - lastMs) / 1000)} s ago`);
      const lease = await state.acquireLease(nameLease(sort, name), `retired by controller${instance}`, leaseMs);
      if (lease === undefined) throw alive('it has its name, or Redis has just been started');
      return lastMs + lastWordMs;
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      throw new ApiError(503, 'Whether the process is alive is not known while Redis is away.');
    }
  }

  private async begin(
    registry: ProcessRegistry,
    { name, number }: RegisteredProcess,
    silentSinceMs: number,
  ): Promise<void> {
    const { instance, state, clock, logger } = this.dependencies;
    try {
      await registry.retire(number, { silentSinceMs, takenOverBy: instance, isSettled: false });
    } catch (error) {
      if (!(error instanceof DocumentConflictError)) throw error;
      throw new ApiError(409, `Another controller has begun to retire '${name}'.`);
    }
    logger.warn(
      { sort: registry.sort, name, number, silentForMs: clock.now() - silentSinceMs },
      'a process is retired',
    );
    await state.deleteRow(`instances ${registry.sort}`, name);
  }

  private async settle(
    registry: ProcessRegistry,
    progress: RetirementProgress,
    silentSinceMs: number,
    isResumed: boolean,
  ): Promise<void> {
    const { logger, instance } = this.dependencies;
    const { sort } = registry;
    const { number, name } = progress;
    const dependencies = { ...this.dependencies, isClosing: () => this.closing };
    try {
      let isEmpty = await takeOverQueue(dependencies, { sort, number, silentSinceMs, isResumed }, progress);
      if (sort === 'controllers' && isEmpty) {
        isEmpty = await takeOverUnplaced(dependencies, number, progress);
        await new EarlierActivations(this.dependencies).open(number);
      }
      if (!isEmpty) throw new Error('this controller closes');
      await registry.retire(number, { silentSinceMs, takenOverBy: instance, isSettled: true });
      progress.isSettled = true;
      logger.warn({ ...progress }, 'what a retired process left is settled');
    } catch (error) {
      logger.error({ sort, name, error: String(error) }, 'what a retired process left is not settled: retire it again');
      this.running.delete(`${sort} ${number}`);
    }
  }
}

/** Dependencies of takeOverQueue. */
export interface TakeoverDependencies {
  bus: MessageBus;
  store: ArtifactStore;
  records: RecordWriter;
  /** Which records are stored. */
  recordLevels: RecordLevels;
  clock: Clock;
  logger: Logger;
  /** This controller's number. */
  instance: number;
  topicOptions: TopicOptions;
  /** The numbers of invokers that take activations now. */
  usableInvokers: () => readonly number[];
  /** Whether the action of an activation may run twice. */
  isIdempotent: (message: ActivationMessage) => Promise<boolean>;
  isClosing: () => boolean;
}

/** A process that never comes back. */
export interface RetiredProcess {
  sort: 'invokers' | 'controllers';
  number: number;
  /** Epoch ms: it began nothing that was accepted later. */
  silentSinceMs: number;
  /** Another takeover of the queue ended before it was through. */
  isResumed: boolean;
}

/** Counts of the activations that were left; they grow while a takeover runs. */
export interface TakeoverCounts {
  /** Runs elsewhere. */
  moved: number;
  /** Recorded as stopped. */
  stopped: number;
}

/** Messages in hand at once: so many may have been moved by a takeover that did not end. */
const atOnce = 50;
/** How often a queue is looked at that others may still send to, and an invoker that has no room, ms. */
const lookMs = 200;
/** How often a message that cannot be settled is told of, ms. */
const sayMs = 10_000;
/** Nothing more comes from a controller that had not heard of the silence, ms. */
const lastMs = 1000;

const texts = {
  invokers: 'The invoker stopped while the action ran.',
  controllers: 'The controller stopped while the sequence ran.',
};

/**
 * Empties the queue of a process that never comes back. An activation that it may have begun is recorded as stopped; one that
 * it cannot have begun is sent to another invoker, or back to the GPU scheduler. Resolves with true when nothing
 * is left, and with false when this controller closes.
 */
export async function takeOverQueue(
  dependencies: TakeoverDependencies,
  left: RetiredProcess,
  counts: TakeoverCounts,
): Promise<boolean> {
  const { bus, clock, logger, topicOptions } = dependencies;
  const topic = left.sort === 'invokers' ? `invoker${left.number}` : `compositions${left.number}`;
  await bus.ensureTopic(topic, topicOptions);
  let position = 0;
  const take = async (delivery: Delivery, at: number): Promise<void> => {
    const message = read(delivery, topic, logger);
    if (message !== undefined) await settle(dependencies, left, message, at < atOnce, counts);
    delivery.done();
  };
  const subscription = await bus.subscribe(topic, topic, { maxInFlight: atOnce }, (delivery) => {
    void take(delivery, position++).catch((error: unknown) => {
      logger.error({ topic, error: String(error) }, 'a message of a retired process could not be settled');
    });
  });
  try {
    for (let emptyMs = 0; emptyMs < lastMs;) {
      if (dependencies.isClosing()) return false;
      await sleep(clock, lookMs);
      emptyMs = bus.lag(topic, topic) === 0 ? emptyMs + lookMs : 0;
    }
    return true;
  } finally {
    await subscription.close();
  }
}

/** Sends what waited for a GPU at a controller that never comes back to this one, which has it placed. Resolves as takeOverQueue. */
export async function takeOverUnplaced(
  dependencies: TakeoverDependencies,
  number: number,
  counts: TakeoverCounts,
): Promise<boolean> {
  const { bus, clock, logger, instance, topicOptions, isClosing } = dependencies;
  const topic = unplacedTopic(number);
  await bus.ensureTopic(topic, topicOptions);
  const subscription = await bus.subscribe(topic, topic, { maxInFlight: atOnce }, (delivery) => {
    // It may have been placed: the one that decides on it finds out.
    const message = { ...delivery.message, seenBefore: true };
    void persist(dependencies, () => bus.send(unplacedTopic(instance), message).synced()).then(
      () => {
        counts.moved++;
        delivery.done();
      },
      (error: unknown) =>
        logger.error({ topic, error: String(error) }, 'an activation stays with a retired controller'),
    );
  });
  try {
    while (bus.lag(topic, topic) > 0) {
      if (isClosing()) return false;
      await sleep(clock, lookMs);
    }
    return true;
  } finally {
    await subscription.close();
  }
}

function read(delivery: Delivery, topic: string, logger: Logger): ActivationMessage | undefined {
  try {
    return readActivationMessage(delivery.message);
  } catch (error) {
    if (!(error instanceof MalformedError)) throw error;
    logger.warn(
      { topic, offset: delivery.offset, reason: error.message },
      'a message that is no activation was skipped',
    );
    return undefined;
  }
}

async function settle(
  dependencies: TakeoverDependencies,
  left: RetiredProcess,
  message: ActivationMessage,
  isAmongFirst: boolean,
  counts: TakeoverCounts,
): Promise<void> {
  if (await isRecorded(dependencies, message)) return;
  // Where it lies tells nothing: what was done before it need not be committed.
  const isSurelyWaiting = message.transid[1] > left.silentSinceMs;
  const mayHaveMoved = left.isResumed && isAmongFirst;
  const mayMove =
    left.sort === 'invokers' &&
    ((isSurelyWaiting && !mayHaveMoved) || (await persist(dependencies, () => dependencies.isIdempotent(message))));
  if (!mayMove) {
    await recordStopped(dependencies, left, message);
    counts.stopped++;
    return;
  }
  await persist(dependencies, () => send(dependencies, message));
  counts.moved++;
}

/** Resolves once the message would survive a power loss elsewhere; rejects if there is no room now. */
async function send(
  { bus, instance, usableInvokers }: TakeoverDependencies,
  message: ActivationMessage,
): Promise<void> {
  if (message.gpu !== undefined) {
    const unplaced: UnplacedMessage = { activation: message, restarted: true };
    await bus.send(unplacedTopic(instance), unplaced as unknown as JsonObject).synced();
    return;
  }
  const invokers = usableInvokers();
  // The ids are random: they spread evenly.
  const chosen = invokers[Number.parseInt(message.activationId.slice(-6), 16) % Math.max(1, invokers.length)];
  if (chosen === undefined) throw new Error('no invoker takes activations now');
  await bus.send(`invoker${chosen}`, message as unknown as JsonObject).synced();
}

/** Tries until it works or this controller closes; rejects then: the message comes again. */
async function persist<Result>(
  { clock, logger, isClosing }: Pick<TakeoverDependencies, 'clock' | 'logger' | 'isClosing'>,
  work: () => Promise<Result>,
): Promise<Result> {
  for (let saidMs = -Infinity; ;) {
    try {
      return await work();
    } catch (error) {
      if (isClosing()) throw error;
      if (clock.monotonicMs() - saidMs >= sayMs) {
        saidMs = clock.monotonicMs();
        logger.warn({ error: String(error) }, 'what a retired process left cannot be settled yet; it is tried again');
      }
      await sleep(clock, lookMs);
    }
  }
}

/** Ends an activation as its invoker would have: with a record, and a completion for the controller that counts it. */
async function recordStopped(
  { bus, records, recordLevels, clock, logger }: TakeoverDependencies,
  { sort, number }: RetiredProcess,
  message: ActivationMessage,
): Promise<void> {
  const record = refusedRecord(message, clock.now(), texts[sort]);
  if (isRecordKept(recordLevels, recordedCall(message), ActivationStatus.whiskError)) {
    await new Promise<void>((stored) => records.add(activationDocument(record, clock.now()), stored));
  }
  if (sort === 'controllers') return;
  const { transid, activationId } = message;
  const completion: CompletionMessage = {
    transid,
    activationId,
    isSystemError: true,
    instance: { instance: number, userMemory: '0 MB', instanceType: 'invoker', tags: [], dedicatedNamespaces: [] },
  };
  try {
    bus.send(completedTopic(message.rootControllerIndex.asString), completion as unknown as JsonObject);
  } catch (error) {
    logger.warn({ activationId, error: String(error) }, 'a completion could not be sent: the record tells it');
  }
}
