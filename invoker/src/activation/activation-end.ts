import type { EndedActivation } from '@gpuwhisk/common/activations/activity';
import { isRecordKept, recordedCall } from '@gpuwhisk/common/activations/record-policy';
import { ActivationStatus, activationDocument } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse, WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { SavedStart } from '@gpuwhisk/common/prewarmer';
import type { JsonObject } from '@gpuwhisk/common/json';
import { completedTopic, unplacedTopic } from '@gpuwhisk/common/messages';
import type { ActivationMessage, AcknowledgementMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { LoadingStart } from '../pool/pool-member.js';
import type { RunnableAction } from './action-loader.js';
import { activationRecord, coldStartRecord } from './activation-record.js';
import type { ActivationTimes, StartParts } from './activation-record.js';
import { developerErrorLogLine } from './activation-response.js';
import type { InvokerContext } from './invoker-context.js';
import type { RunFigures } from './run-figures.js';

/** Lag of the record writer from which on answers wait for their records, ms. */
const longestLagMs = 30;

/** A point in time on both clocks. */
export interface Moment {
  epochMs: number;
  monotonicMs: number;
}

/** The present time on both clocks. */
export function momentOf(clock: Clock): Moment {
  return { epochMs: clock.now(), monotonicMs: clock.monotonicMs() };
}

/** The run loaded code: the time of the load, ms, and the state of the container before. */
export interface Load {
  initMs: number;
  start: LoadingStart;
  /** Known parts of the start, ms. */
  parts?: StartParts;
  /** Absent if no learned imports were loaded ahead. */
  saved?: SavedStart;
}

/** The run found its code loaded. */
export interface Found {
  found: 'prewarmed' | 'warm';
}

/** How an activation ended. */
export interface Ended {
  start: Moment;
  /**
   * Undefined if the run never reached its code.
   */
  load: ((Load | Found) & RunFigures) | undefined;
  response: ActivationResponse;
  timedOut: boolean;
  logs: Promise<string[]>;
}

/** Acknowledges and records an activation; `stored` is called when the record is durable. */
export async function endActivation(
  context: InvokerContext,
  message: ActivationMessage,
  action: RunnableAction,
  { start, load, response, timedOut, logs }: Ended,
  stored: () => void,
): Promise<void> {
  const [, acceptedMs] = message.transid;
  const startMs = start.epochMs;
  // Measured by the monotonic clock: a step of the wall clock must not lengthen a run or end it before its start.
  const endMs = startMs + Math.round(context.clock.monotonicMs() - start.monotonicMs);
  const times = { startMs, endMs, waitMs: Math.max(0, startMs - acceptedMs), ...load };
  const record = activationRecord(message, action, times, response, timedOut);
  // An answer may precede its record by 50 ms. If the store lags further behind, the answer waits for the record.
  const answersFirst = context.records.lagMs < longestLagMs;
  const answersWithEnd = message.blocking && answersFirst && (await isThere(logs, context.clock));
  if (message.blocking && answersFirst && !answersWithEnd) acknowledgeResult(context, message, record);
  let lines = await logs;
  if (response.statusCode === ActivationStatus.developerError && action.limits.logs > 0) {
    const note = `${new Date(context.clock.now()).toISOString().padEnd(30)} stderr: ${developerErrorLogLine}`;
    lines = [...lines, note]; // The records of a batch share one list of lines.
  }
  context.followed?.ended(message.activationId, lines);
  if (message.sample === undefined) {
    context.metrics.activationEnded(action, times, response, message.user.namespace.name, message.gpuNeed?.sloMs);
    const coldStart = coldStartRecord(message, times);
    if (coldStart !== undefined) context.coldStarted?.(coldStart);
    context.activity?.ended(endedActivation(message, times, response.statusCode));
  }
  const full = lines.length === 0 ? record : { ...record, logs: lines };
  const { inputSize } = load ?? {};
  complete(context, message, full, { answer: answersWithEnd ? record : undefined, inputSize }, () => {
    if (message.blocking && !answersFirst) acknowledgeResult(context, message, record);
    stored();
  });
}

/** What is counted of an activation. */
function endedActivation(message: ActivationMessage, times: ActivationTimes, statusCode: number): EndedActivation {
  const { gpu, gpuNeed, user, activationId, action } = message;
  const [device] = gpu?.devices ?? [];
  const start = times.start ?? times.found;
  const ranMs = times.endMs - times.startMs;
  const predictedMs = gpu?.predicted?.runMs;
  const isCompared = device !== undefined && predictedMs !== undefined && start !== undefined;
  return {
    namespace: user.namespace.name,
    start,
    isFailed: statusCode !== ActivationStatus.success,
    sloMs: gpuNeed?.sloMs,
    tookMs: times.waitMs + ranMs,
    ...(isCompared && {
      gpuRun: {
        activationId,
        device,
        action: `/${action.path}/${action.name}`,
        at: times.endMs,
        predictedMs,
        actualMs: Math.max(0, ranMs - (times.initMs ?? 0)),
      },
    }),
  };
}

/** Whether `logs` are complete after the data that can be read now: one message then carries both result and end. */
function isThere(logs: Promise<unknown>, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const yes = (): void => resolve(true);
    logs.then(yes, yes);
    clock.defer(() => resolve(false));
  });
}

/** Sends an acknowledgement; false if the bus refuses the message. */
function acknowledge(
  context: InvokerContext,
  message: ActivationMessage,
  acknowledgement: AcknowledgementMessage,
): boolean {
  const topic = completedTopic(message.rootControllerIndex.asString);
  try {
    context.bus.send(topic, acknowledgement as unknown as JsonObject);
    return true;
  } catch (error) {
    context.logger.error({ topic, error: String(error) }, 'an acknowledgement could not be sent');
    return false;
  }
}

/** Sends the result to a waiting controller at once; the activation keeps its slot. */
function acknowledgeResult(context: InvokerContext, message: ActivationMessage, record: WhiskActivation): void {
  acknowledge(context, message, { transid: message.transid, response: record });
}

/**
 * Hands the complete record to the store, if the record is to be kept, and frees the slot at the controller. The message
 * that frees the slot carries the result, without logs, if a caller waits for `answer`, and the size of the input that the
 * function has reported. `stored` is called once the record is durable, or at once if no record is kept.
 */
export function complete(
  context: InvokerContext,
  message: ActivationMessage,
  record: WhiskActivation,
  { answer, inputSize }: { answer: WhiskActivation | undefined; inputSize?: number | undefined },
  stored: () => void,
): void {
  const kept = isRecordKept(context.recordLevels, recordedCall(message), record.response.statusCode);
  if (kept) context.records.add(activationDocument(record, context.clock.now()), stored);
  acknowledgeCompletion(context, message, record, answer, inputSize);
  if (!kept) stored();
}

/**
 * Returns an activation that was placed on a GPU to its controller, which decides again. Resolves once the message would
 * survive a power loss; rejects if the bus refuses the message.
 */
export async function giveBack(context: InvokerContext, unplaced: UnplacedMessage): Promise<void> {
  const message = unplaced.activation;
  const topic = unplacedTopic(message.rootControllerIndex.asString);
  await context.bus.send(topic, unplaced as unknown as JsonObject).synced();
}

/** Ends an activation without a run and without a record. */
export function refuse(context: InvokerContext, message: ActivationMessage, record: WhiskActivation): void {
  acknowledgeCompletion(context, message, record, message.blocking ? record : undefined);
}

function acknowledgeCompletion(
  context: InvokerContext,
  message: ActivationMessage,
  record: WhiskActivation,
  answer: WhiskActivation | undefined,
  inputSize?: number,
): void {
  if (message.sample === undefined && message.launch === undefined)
    context.userEvents?.activation(record, message.user);
  const { transid, activationId } = message;
  const { statusCode } = record.response;
  const end = {
    ...{ transid, isSystemError: statusCode === ActivationStatus.whiskError, instance: context.instance },
    ...(inputSize !== undefined && { inputSize }),
  };
  if (answer !== undefined && acknowledge(context, message, { ...end, response: answer })) return;
  // Sent even if the result is too large for the bus: the slot is free.
  acknowledge(context, message, {
    ...end,
    activationId,
    ...(message.gpu !== undefined && statusCode !== ActivationStatus.success && { isFailed: true }),
  });
}
