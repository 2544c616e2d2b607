import { isRecordKept, recordedCall } from '@gpuwhisk/common/activations/record-policy';
import { ActivationStatus, activationDocument } from '@gpuwhisk/common/entities/activation';
import type { ActivationResponse, WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { JsonObject } from '@gpuwhisk/common/json';
import { completedTopic, unplacedTopic } from '@gpuwhisk/common/messages';
import type { ActivationMessage, AcknowledgementMessage, UnplacedMessage } from '@gpuwhisk/common/messages';
import type { Clock } from '@gpuwhisk/common/system/clock';
import type { LoadingStart } from '../pool/pool-member.js';
import type { RunnableAction } from './action-loader.js';
import { activationRecord } from './activation-record.js';
import { developerErrorLogLine } from './activation-response.js';
import type { InvokerContext } from './invoker-context.js';

/** A record is stored at most about this long after those that wait already, ms. */
const longestLagMs = 30;

/** A point in time on both clocks. */
export interface Moment {
  epochMs: number;
  monotonicMs: number;
}

/** Now. */
export function momentOf(clock: Clock): Moment {
  return { epochMs: clock.now(), monotonicMs: clock.monotonicMs() };
}

/** Code was loaded: how long that took, ms, and into what. */
export interface Load {
  initMs: number;
  start: LoadingStart;
}

/** Code was there. */
export interface Found {
  found: 'prewarmed' | 'warm';
}

/** How an activation ended. */
export interface Ended {
  start: Moment;
  /** Undefined if it never reached its code. `batch`: with how many it ran, itself included; absent: alone. */
  load: ((Load | Found) & { batch?: number }) | undefined;
  response: ActivationResponse;
  timedOut: boolean;
  logs: Promise<string[]>;
}

/** Acknowledges an activation and records it; `stored` is called when its record is durable. */
export async function endActivation(
  context: InvokerContext,
  message: ActivationMessage,
  action: RunnableAction,
  { start, load, response, timedOut, logs }: Ended,
  stored: () => void,
): Promise<void> {
  const [, acceptedMs] = message.transid;
  const startMs = start.epochMs;
  // By the monotonic clock, so that a step of the wall clock makes no run longer or end before it began.
  const endMs = startMs + Math.round(context.clock.monotonicMs() - start.monotonicMs);
  const times = { startMs, endMs, waitMs: Math.max(0, startMs - acceptedMs), ...load };
  const record = activationRecord(message, action, times, response, timedOut);
  // The answer may be ahead of the record by 50 ms; where the store lags behind, it waits for the record.
  const answersFirst = context.records.lagMs < longestLagMs;
  const answersWithEnd = message.blocking && answersFirst && (await isThere(logs, context.clock));
  if (message.blocking && answersFirst && !answersWithEnd) acknowledgeResult(context, message, record);
  let lines = await logs;
  if (response.statusCode === ActivationStatus.developerError && action.limits.logs > 0) {
    const note = `${new Date(context.clock.now()).toISOString().padEnd(30)} stderr: ${developerErrorLogLine}`;
    lines = [...lines, note]; // A batch's records share theirs.
  }
  if (message.sample === undefined) {
    context.metrics.activationEnded(action, times, response.statusCode, message.user.namespace.name);
  }
  const full = lines.length === 0 ? record : { ...record, logs: lines };
  complete(context, message, full, answersWithEnd ? record : undefined, () => {
    if (message.blocking && !answersFirst) acknowledgeResult(context, message, record);
    stored();
  });
}

/** Whether `logs` are there once what can be read now has been: then one message tells the result and the end. */
function isThere(logs: Promise<unknown>, clock: Clock): Promise<boolean> {
  return new Promise((resolve) => {
    const yes = (): void => resolve(true);
    logs.then(yes, yes);
    clock.defer(() => resolve(false));
  });
}

/** False if the bus does not take it. */
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

/** Tells a waiting controller the result at once; the slot is still in use. */
function acknowledgeResult(context: InvokerContext, message: ActivationMessage, record: WhiskActivation): void {
  acknowledge(context, message, { transid: message.transid, response: record });
}

/**
 * Hands the complete record to the store, if it is to be kept, and frees the slot at the controller, in one message with
 * the result where a caller waits for that (`answer`, without logs). `stored` is called once it is durable, or at once.
 */
export function complete(
  context: InvokerContext,
  message: ActivationMessage,
  record: WhiskActivation,
  answer: WhiskActivation | undefined,
  stored: () => void,
): void {
  const kept = isRecordKept(context.recordLevels, recordedCall(message), record.response.statusCode);
  if (kept) context.records.add(activationDocument(record, context.clock.now()), stored);
  acknowledgeCompletion(context, message, record, answer);
  if (!kept) stored();
}

/**
 * Gives an activation that was placed on a GPU and is not run there back to its controller, which decides again. Resolves once
 * that would survive a power loss; rejects if the bus does not take it.
 */
export async function giveBack(context: InvokerContext, unplaced: UnplacedMessage): Promise<void> {
  const message = unplaced.activation;
  const topic = unplacedTopic(message.rootControllerIndex.asString);
  await context.bus.send(topic, unplaced as unknown as JsonObject).synced();
}

/** Ends an activation that is not run, and leaves no record of it. */
export function refuse(context: InvokerContext, message: ActivationMessage, record: WhiskActivation): void {
  acknowledgeCompletion(context, message, record, message.blocking ? record : undefined);
}

function acknowledgeCompletion(
  context: InvokerContext,
  message: ActivationMessage,
  record: WhiskActivation,
  answer: WhiskActivation | undefined,
): void {
  if (message.sample === undefined && message.launch === undefined)
    context.userEvents?.activation(record, message.user);
  const { transid, activationId } = message;
  const { statusCode } = record.response;
  const end = { transid, isSystemError: statusCode === ActivationStatus.whiskError, instance: context.instance };
  if (answer !== undefined && acknowledge(context, message, { ...end, response: answer })) return;
  // Also of a result that is too large for the bus: the slot is free.
  acknowledge(context, message, {
    ...end,
    activationId,
    ...(message.gpu !== undefined && statusCode !== ActivationStatus.success && { isFailed: true }),
  });
}
