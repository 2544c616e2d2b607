import { ApiError } from '@gpuwhisk/common/errors';
import { nameLease, lifeSigns } from '@gpuwhisk/common/state/instance-ids';
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

/** Progress of a retirement. */
interface RetirementProgress extends TakeoverCounts {
  name: string;
  number: number;
  /** Whether all activations of the process are settled. */
  isSettled: boolean;
}

/** Dependencies of Retirements. */
export interface RetirementDependencies extends Omit<TakeoverDependencies, 'isClosing'> {
  state: ClusterState;
  inFlight: EarlierActivationsDependencies['inFlight'];
  /** Time since an invoker's last ping, ms. */
  silenceMs: (invoker: number) => number;
  /** The registered controllers, `controller<N>`. */
  controllers: () => ReadonlySet<string>;
}

/** A process with a sign of life within this time is alive, ms. */
const aliveMs = 10_000;
/**
 * How long the process's name is reserved while the retirement is stored, ms. The two requests to the store must end within
 * it.
 */
const leaseMs = 90_000;
/**
 * How long after its last sign of life a process may have begun an activation, ms: the interval of signs plus the difference
 * of clocks.
 */
const lastWordMs = 2500;

/**
 * Retires processes that never come back. Their activations are settled, and a retired process that does return begins
 * nothing.
 */
export class Retirements {
  /** Running retirements, by kind and number of the process. */
  private readonly running = new Map<string, RetirementProgress>();
  /** Requests being answered, by kind and name of the process, so that each name is handled once at a time. */
  private readonly asked = new Map<string, Promise<RetirementProgress>>();
  private closing = false;

  constructor(private readonly dependencies: RetirementDependencies) {}

  close(): void {
    this.closing = true;
  }

  /**
   * Begins or continues the retirement of a process and returns its progress. Throws ApiError: 404 for an unknown name, 409
   * if the process is alive or another controller retires it, 503 if the cluster's state is unavailable.
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
    // A process that was retired earlier may have had the same name.
    const found = named.find(({ retired }) => retired === undefined || !retired.isSettled) ?? named.at(-1);
    if (found === undefined) throw new ApiError(404, `There is no '${name}' among the ${registry.sort}.`);
    const by = found.retired?.takenOverBy;
    const { controllers, instance } = this.dependencies;
    if (by !== undefined && by !== instance && !found.retired?.isSettled && controllers().has(`controller${by}`)) {
      throw new ApiError(
        409,
        `controller${by} already retires '${name}': send the request to that controller, or wait.`,
      );
    }
    return found;
  }

  /** Verifies that the process is gone. Resolves with the time of its last sign of life. */
  private async end({ sort }: ProcessRegistry, { name, number }: RegisteredProcess): Promise<number> {
    const { state, clock, silenceMs, controllers, instance } = this.dependencies;
    const alive = (how: string): ApiError =>
      new ApiError(409, `'${name}' of the ${sort} is alive: ${how}. Stop it first.`);
    try {
      const nowMs = clock.now();
      const silent = sort === 'invokers' ? silenceMs(number) : Infinity;
      if (silent < aliveMs) throw alive(`its last ping was ${Math.floor(silent / 1000)} s ago`);
      if (sort === 'controllers' && controllers().has(`controller${number}`)) throw alive('it answers requests');
      const signs = await state.rows(lifeSigns(sort));
      const lastMs = Math.max(Number(signs.get(name) ?? 0), nowMs - silent);
      if (nowMs - lastMs < aliveMs)
        throw alive(`its last sign of life was ${Math.floor((nowMs - lastMs) / 1000)} s ago`);
      const lease = await state.acquireLease(nameLease(sort, name), `retired by controller${instance}`, leaseMs);
      if (lease === undefined) throw alive('its name is registered, or Redis has just been started');
      return lastMs + lastWordMs;
    } catch (error) {
      if (!(error instanceof StateUnavailableError)) throw error;
      throw new ApiError(503, 'While Redis is unavailable the platform cannot tell whether the process is alive.');
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
      'the retirement of a process begins',
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
      logger.warn({ ...progress }, 'all activations of a retired process are settled');
    } catch (error) {
      logger.error(
        { sort, name, error: String(error) },
        'activations of a retired process are not settled: retire the process again',
      );
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
  /** The numbers of the invokers that accept activations now. */
  usableInvokers: () => readonly number[];
  /** Whether an activation's action may run twice. */
  isIdempotent: (message: ActivationMessage) => Promise<boolean>;
  isClosing: () => boolean;
}

/** A process that never comes back. */
export interface RetiredProcess {
  sort: 'invokers' | 'controllers';
  number: number;
  /** Epoch ms of the last sign of life: the process began no activation that was accepted later. */
  silentSinceMs: number;
  /** Whether an earlier takeover of the same queue was interrupted. */
  isResumed: boolean;
}

/** Counts of the process's activations; they grow during a takeover. */
export interface TakeoverCounts {
  /** Activations sent elsewhere. */
  moved: number;
  /** Activations recorded as stopped. */
  stopped: number;
}

/** Most messages handled at once. An interrupted takeover may already have moved this many. */
const atOnce = 50;
/** Interval of looks at a queue that others may still send to, and at an invoker whose topic is full, ms. */
const lookMs = 200;
/** Interval of log messages about a message that cannot be settled, ms. */
const sayMs = 10_000;
/** After this time no controller sends to a silent process any more, ms. */
const lastMs = 1000;

const texts = {
  invokers: 'The invoker stopped while the action ran.',
  controllers: 'The controller stopped while the sequence ran.',
};

/**
 * Empties the queue of a process that never comes back. An activation that may have begun is recorded as stopped. Others go
 * to another invoker, or back to the GPU scheduler. Resolves with true if the queue is empty, and with false if this
 * controller closes.
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

/** Takes over the activations that waited for a GPU at a controller that never comes back. Resolves as takeOverQueue. */
export async function takeOverUnplaced(
  dependencies: TakeoverDependencies,
  number: number,
  counts: TakeoverCounts,
): Promise<boolean> {
  const { bus, clock, logger, instance, topicOptions, isClosing } = dependencies;
  const topic = unplacedTopic(number);
  await bus.ensureTopic(topic, topicOptions);
  const subscription = await bus.subscribe(topic, topic, { maxInFlight: atOnce }, (delivery) => {
    // The activation may have been placed before; the leader checks that.
    const message = { ...delivery.message, seenBefore: true };
    void persist(dependencies, () => bus.send(unplacedTopic(instance), message).synced()).then(
      () => {
        counts.moved++;
        delivery.done();
      },
      (error: unknown) =>
        logger.error({ topic, error: String(error) }, 'an activation of a retired controller could not be taken over'),
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
  // The position in the topic proves nothing, as the commit of a handled message may be missing.
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

/** Resolves when the message is durable in another topic. Rejects if that topic is full. */
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
  // Ids are random, so that activations spread evenly.
  const chosen = invokers[Number.parseInt(message.activationId.slice(-6), 16) % Math.max(1, invokers.length)];
  if (chosen === undefined) throw new Error('no invoker accepts activations now');
  await bus.send(`invoker${chosen}`, message as unknown as JsonObject).synced();
}

/** Repeats `work` until it succeeds. Rejects when this controller closes; the message is then delivered again. */
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
        logger.warn(
          { error: String(error) },
          'an activation of a retired process cannot be settled yet; the attempt is repeated',
        );
      }
      await sleep(clock, lookMs);
    }
  }
}

/**
 * Ends an activation as its invoker would: with a record, and with a completion for the controller that counts the
 * activation.
 */
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
    logger.warn({ activationId, error: String(error) }, 'a completion could not be sent; the record has the result');
  }
}
