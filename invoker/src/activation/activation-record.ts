import type { ActivationResponse, WhiskActivation } from '@gpuwhisk/common/entities/activation';
import type { ActionLimits } from '@gpuwhisk/common/entities/action';
import type { Parameter } from '@gpuwhisk/common/entities/parameters';
import type { ColdStartRecord, GpuRecord } from '@gpuwhisk/common/gpu';
import type { AloneTimes } from '@gpuwhisk/common/gpu-observations';
import type { SavedStart } from '@gpuwhisk/common/prewarmer';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import type { TrainingProgress } from '@gpuwhisk/common/training';
import type { LoadTimes } from '../containers/container-factory.js';
import type { LoadingStart, PoolMember } from '../pool/pool-member.js';

/** Parts of a start that the invoker and the runtime measure, ms. */
export type StartParts = Pick<ColdStartRecord, 'allocMs' | 'runtimeMs' | 'importMs' | 'codeMs' | 'modelMs'>;

/** Times of an activation: start and end in epoch ms, durations in ms. */
export interface ActivationTimes {
  startMs: number;
  endMs: number;
  /** Time from acceptance to the start of the run, ms. */
  waitMs: number;
  /** Set exactly when code was loaded in this run. */
  initMs?: number;
  /** State of the container before the code was loaded. */
  start?: LoadingStart;
  /** Known parts of the start, ms; set only with `initMs`. */
  parts?: StartParts;
  /** Set if learned imports had been loaded. */
  saved?: SavedStart;
  /** State of a container that had the code loaded; absent if the run loaded the code or got no container. */
  found?: 'prewarmed' | 'warm';
  /** Activations in the same run, this one included; absent for a run of one. */
  batch?: number;
  /** Size of its input as the function has reported it; absent: it has not. */
  inputSize?: number;
  /** For how long others used its GPU after the load, ms; absent: not known. */
  besideMs?: number;
  /** Progress of the run of a training job. */
  training?: TrainingProgress;
}

/** Fields of an action that its records contain. */
export interface RecordedAction {
  kind: string;
  limits: ActionLimits;
  version: string;
}

/** The record of an activation, without logs. `action` is undefined if the action could not be read. */
export function activationRecord(
  message: ActivationMessage,
  action: RecordedAction | undefined,
  times: ActivationTimes,
  response: ActivationResponse,
  timedOut: boolean,
): WhiskActivation {
  const { action: reference } = message;
  const annotations: Parameter[] = [];
  if (action !== undefined) annotations.push({ key: 'limits', value: { ...action.limits } });
  annotations.push({ key: 'path', value: `${reference.path}/${reference.name}` });
  annotations.push({ key: 'kind', value: action?.kind ?? 'unknown' });
  annotations.push({ key: 'timeout', value: timedOut });
  if (message.cause !== undefined) annotations.push({ key: 'causedBy', value: 'sequence' });
  if (reference.binding !== undefined) annotations.push({ key: 'binding', value: reference.binding });
  annotations.push({ key: 'waitTime', value: times.waitMs });
  if (times.initMs !== undefined) annotations.push({ key: 'initTime', value: times.initMs });
  if (times.start !== undefined) annotations.push({ key: 'start', value: times.start });
  else if (times.found === undefined) annotations.push({ key: 'start', value: 'none' });
  if (message.sample !== undefined) annotations.push({ key: 'sample', value: true });
  if (message.training !== undefined) {
    const { job, attempt, members } = message.training;
    const invoker = message.gpu && { invoker: message.gpu.invoker };
    annotations.push({ key: 'training', value: { job, attempt, members, ...invoker, ...times.training } });
  }
  const gpu = gpuRecord(message, times);
  if (gpu !== undefined) annotations.push({ key: 'gpu', value: { ...gpu } });
  const coldStart = startRecord(message, times);
  if (coldStart !== undefined) annotations.push({ key: 'coldStart', value: { ...coldStart } });
  const record: WhiskActivation = {
    namespace: message.user.namespace.name,
    name: reference.name,
    version: action?.version ?? reference.version ?? '0.0.1',
    subject: message.user.subject,
    activationId: message.activationId,
    start: times.startMs,
    end: times.endMs,
    duration: times.endMs - times.startMs,
    response,
    logs: [],
    publish: false,
    annotations,
  };
  if (message.cause !== undefined) record.cause = message.cause;
  return record;
}

/** The GPU part of an activation's record; undefined for an activation without a GPU. */
function gpuRecord({ gpu, transid }: ActivationMessage, times: ActivationTimes): GpuRecord | undefined {
  const start = times.start ?? times.found;
  const [device] = gpu?.devices ?? [];
  if (gpu === undefined || device === undefined || start === undefined) return undefined;
  const { slice, share, at, simulated, predicted, alone } = gpu;
  const actualMs = times.endMs - times.startMs;
  const ranMs = actualMs - (times.initMs ?? 0);
  return {
    device,
    ...(slice !== undefined && { slice }),
    share: share.shareClass / 100,
    queueMs: queueMsOf(at, transid),
    ...(start === 'injected' && times.initMs !== undefined && { injectMs: times.initMs }),
    ...(predicted !== undefined && { predictedMs: Math.round(predicted.runMs) }),
    actualMs,
    ...comparedWithAlone(usualMs(alone, times.inputSize), ranMs, times.besideMs),
    start,
    ...(times.batch !== undefined && { batch: times.batch }),
    ...(times.inputSize !== undefined && { inputSize: times.inputSize }),
    ...(simulated === true && { simulated }),
  };
}

/** The parts of a start that loaded code; undefined without a GPU or without a load. */
export function coldStartRecord(
  { gpu, transid }: ActivationMessage,
  { waitMs, initMs, start, parts = {} }: ActivationTimes,
): ColdStartRecord | undefined {
  if (gpu === undefined || initMs === undefined) return undefined;
  const rounded = Object.fromEntries(Object.entries(parts).map(([name, ms]) => [name, Math.round(ms)]));
  return {
    totalMs: waitMs + initMs,
    queueMs: queueMsOf(gpu.at, transid),
    ...(start === 'injected' && { injectMs: initMs }),
    ...rounded,
  };
}

/** Annotation `coldStart`: the parts of a start with a GPU, and what learned imports saved; undefined without either. */
function startRecord(
  message: ActivationMessage,
  times: ActivationTimes,
): (Partial<ColdStartRecord> & Partial<SavedStart>) | undefined {
  const { waitMs, initMs, saved } = times;
  const parts = coldStartRecord(message, times);
  if (initMs === undefined || saved === undefined) return parts;
  return { totalMs: waitMs + initMs, ...parts, ...saved, savedMs: Math.round(saved.savedMs) };
}

/** Time from acceptance to a placement at `at` (epoch ms). */
function queueMsOf(at: number, [, acceptedMs]: ActivationMessage['transid']): number {
  return Math.max(0, at - acceptedMs);
}

/** The measured time alone with inputs of the run's size, ms: by the size that the function has reported, if it has. */
function usualMs({ ms, reported = [] }: AloneTimes = {}, inputSize: number | undefined): number | undefined {
  if (inputSize === undefined) return ms;
  return reported.find(([upTo]) => inputSize <= upTo && inputSize > upTo / 2)?.[1];
}

/**
 * A run against its usual time alone, to a thousandth. Beside others the degradation of its rate, 1 − usual / ran: at most the
 * part of the run in which there were others, as no neighbour explains more. Without others how many times its usual time it took.
 */
function comparedWithAlone(
  usual: number | undefined,
  ranMs: number,
  besideMs: number | undefined,
): Pick<GpuRecord, 'degradation' | 'timesUsual'> {
  if (usual === undefined || besideMs === undefined || !(ranMs > 0) || !(usual > 0)) return {};
  const thousandths = (value: number): number => Math.round(value * 1000) / 1000;
  if (besideMs <= 0) return { timesUsual: thousandths(ranMs / usual) };
  return { degradation: thousandths(Math.max(0, Math.min(1 - usual / ranMs, besideMs / ranMs))) };
}

/**
 * The parts of a start whose code is loaded. A container that was ready was made ahead of the activation; an injection is
 * one part.
 */
export function startParts(
  { container, createMs, origin }: PoolMember,
  { importMs, codeMs, entryMs }: LoadTimes = {},
): StartParts {
  const { runtimeMs } = container;
  if (origin === 'injected') return {};
  return {
    ...(origin === 'cold' && { allocMs: Math.max(0, createMs - (runtimeMs ?? 0)) }),
    ...(origin === 'cold' && runtimeMs !== undefined && { runtimeMs }),
    ...(importMs !== undefined && { importMs }),
    ...(codeMs !== undefined && { codeMs }),
    ...(entryMs !== undefined && { modelMs: entryMs }),
  };
}
