import { ownerOf } from '@gpuwhisk/common/messages';
import type { ActivationMessage } from '@gpuwhisk/common/messages';
import { resultBoundsFor } from '@gpuwhisk/common/entities/limits';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { TraceContext } from '@gpuwhisk/common/tracing';
import type { TrainingRun } from '@gpuwhisk/common/training';
import type {
  ContainerSpec,
  InitRequest,
  RunRequest,
  CallLimits,
  TrainingSpec,
} from '../containers/container-factory.js';
import { grantKey, grantOf } from '../gpu-agent/gpu-runs.js';
import type { RunnableAction, ActionCode } from './action-loader.js';
import type { LearnedImports } from './learned-imports.js';
import { fullyQualifiedName } from './action-loader.js';
import type { InvokerContext } from './invoker-context.js';

/** The container that an activation needs, as the pool sees the need. */
interface ContainerWanted {
  /** Activations with the same key may share a container. */
  key: string;
  namespace: string;
  /** As PoolJob.codeOf. */
  codeOf: string;
  spec: ContainerSpec;
  /** Activations that may run as one. */
  batch: number;
}

/** Cached result of the last call for each action, for messages without init arguments or a GPU. */
const usual = new WeakMap<RunnableAction, ContainerWanted & { executeOnly: boolean; learnedAt: number | undefined }>();

/** What was learned of imports, as the choice of a container uses it. */
type Learned = Pick<LearnedImports, 'wanted' | 'changes'>;

/** The container that an activation of the action needs. `learned`: absent where imports are not learned. */
export function containerWanted(
  message: ActivationMessage,
  action: RunnableAction,
  learned?: Learned,
): ContainerWanted {
  if (message.initArgs.length > 0 || message.gpuNeed !== undefined || message.gpu !== undefined) {
    return wantedBy(message, action, learned);
  }
  const before = usual.get(action);
  const executeOnly = message.executeOnly === true;
  const learnedAt = learned?.changes;
  const isSame = before?.namespace === message.user.namespace.name && before.executeOnly === executeOnly;
  if (isSame && before.learnedAt === learnedAt) return before;
  const wanted = { ...wantedBy(message, action, learned), executeOnly, learnedAt };
  usual.set(action, wanted);
  return wanted;
}

function wantedBy(message: ActivationMessage, action: RunnableAction, learned: Learned | undefined): ContainerWanted {
  const { action: reference, initArgs, revision, user } = message;
  // Init parameters may differ from binding to binding.
  const binding = initArgs.length > 0 ? (reference.binding ?? '') : '';
  const namespace = user.namespace.name;
  const gpu = message.gpu && grantOf(message.gpu);
  const place = gpu === undefined ? '' : ` ${grantKey(gpu)}`;
  const batch = message.gpuNeed?.batch ?? 1;
  // A batch runs with the rights of one caller.
  const caller = batch === 1 ? '' : ` ${user.subject}`;
  const rights = message.executeOnly === true ? ' execute-only' : '';
  const { training } = message;
  const wish = training === undefined ? learned?.wanted(namespace, action) : undefined;
  const job = training === undefined ? '' : ` job ${training.job} ${training.attempt}`;
  return {
    key: `${namespace} ${reference.path}/${reference.name} ${revision} ${binding}${place}${caller}${rights}${job}`,
    namespace,
    codeOf: `${ownerOf(reference.path)}${rights}`,
    batch,
    spec: {
      kind: action.runtime,
      memoryMiB: action.limits.memory,
      concurrency: action.limits.concurrency,
      requirements: action.requirements,
      ...(action.npm && { npm: action.npm }),
      imports: action.warm.imports,
      ...wish,
      cuda: action.warm.cuda,
      ...(action.requirements.length > 0 && { installsFor: namespace }),
      ...(gpu !== undefined && { gpu }),
      ...(training !== undefined && { training: trainingSpec(training) }),
    },
  };
}

function trainingSpec({ job, attempt, members, rendezvousMs, checkpointMiB }: TrainingRun): TrainingSpec {
  return { job, attempt, members, rendezvousMs, checkpointMiB };
}

/**
 * The init request of an action. `content` holds the decrypted arguments. `deadlineMs` is the deadline of the run that loads
 * the code, epoch ms, or undefined if the code is loaded ahead of runs.
 */
export function initRequest(
  action: RunnableAction,
  code: ActionCode,
  message: ActivationMessage,
  content: ActivationMessage['content'],
  deadlineMs: number | undefined,
): InitRequest {
  const args = isJsonObject(content) ? content : {};
  const env: Record<string, string> = {};
  for (const key of message.initArgs) env[key] = environmentText(args[key] ?? null);
  Object.assign(env, ownVariables(action, message.user.namespace.name));
  if (deadlineMs !== undefined) {
    env.__OW_ACTIVATION_ID = message.activationId;
    env.__OW_TRANSACTION_ID = message.transid[0];
    env.__OW_DEADLINE = String(deadlineMs);
  }
  const apiKey = apiKeyFor(action, message);
  if (apiKey !== undefined) env.__OW_API_KEY = apiKey;
  return loadRequest(action, code, env);
}

/** The init request of an action's snapshot: nothing in it is of one activation or one caller, as the API key is. */
export function snapshotRequest(action: RunnableAction, code: ActionCode, namespace: string): InitRequest {
  return loadRequest(action, code, ownVariables(action, namespace));
}

/** The variables of an action's environment that are the same for all callers of a namespace. */
function ownVariables(action: RunnableAction, namespace: string): Record<string, string> {
  return {
    __OW_NAMESPACE: namespace,
    __OW_ACTION_NAME: fullyQualifiedName(action),
    __OW_ACTION_VERSION: action.version,
  };
}

function loadRequest(
  action: RunnableAction,
  { code, large, binary, digest }: ActionCode,
  env: Record<string, string>,
): InitRequest {
  const { entry } = action.warm;
  return {
    name: action.name,
    main: action.main,
    ...(large === undefined ? { code: code ?? '' } : { large }),
    binary,
    ...(entry !== undefined && { entry }),
    ...(digest !== undefined && { digest }),
    env,
  };
}

/** The run request of an action, with its deadline in epoch ms. `trace`: the span of the run, if it is traced. */
export function runRequest(
  action: RunnableAction,
  message: ActivationMessage,
  content: ActivationMessage['content'],
  deadlineMs: number,
  trace?: TraceContext,
): RunRequest {
  const request: RunRequest = {
    value: runArguments(message, content),
    namespace: message.user.namespace.name,
    action_name: fullyQualifiedName(action),
    action_version: action.version,
    activation_id: message.activationId,
    transaction_id: message.transid[0],
    deadline: String(deadlineMs),
  };
  const apiKey = apiKeyFor(action, message);
  if (apiKey !== undefined) request.api_key = apiKey;
  if (trace !== undefined) Object.assign(request, trace);
  return request;
}

function apiKeyFor({ annotations }: RunnableAction, { user }: ActivationMessage): string | undefined {
  const provide = parameterValue(annotations, 'provide-api-key');
  const withheld = provide === false || provide === 0 || provide === '' || provide === null;
  return withheld ? undefined : user.authkey.api_key;
}

function runArguments(
  { initArgs }: ActivationMessage,
  content: ActivationMessage['content'],
): JsonObject | JsonValue[] {
  if (Array.isArray(content)) return content;
  if (content === undefined) return {};
  if (initArgs.length === 0) return content;
  const value: JsonObject = { ...content };
  for (const key of initArgs) delete value[key];
  return value;
}

/** An init parameter as environment text: strings unchanged, null as the empty string, other values as JSON. */
function environmentText(value: JsonValue): string {
  if (value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

const MiB = 1024 * 1024;

/** The bounds of a call into a container: the action's limits, and the namespace's bounds on results. */
export function callLimits(
  { resultBounds }: Pick<InvokerContext, 'resultBounds'>,
  { user }: ActivationMessage,
  { limits }: RunnableAction,
): CallLimits {
  const results = resultBoundsFor(resultBounds, user.limits);
  return { timeoutMs: limits.timeout, logLimitBytes: limits.logs * MiB, ...results, forNamespace: user.namespace.name };
}

/**
 * The limits of a run whose code is loaded. A sample, which only measures, has its own shorter time limit, a training job its
 * own longer one.
 */
export function runLimits(limits: CallLimits, { sample, training }: ActivationMessage): CallLimits {
  if (training !== undefined) return { ...limits, timeoutMs: training.limitMs };
  return sample === undefined ? limits : { ...limits, timeoutMs: Math.min(limits.timeoutMs, sample.maxMs) };
}

/** The deadline of a run that begins now, epoch ms. */
export function deadlineMs(
  { clock }: Pick<InvokerContext, 'clock'>,
  { training }: Pick<ActivationMessage, 'training'>,
  { limits }: RunnableAction,
): number {
  return clock.now() + (training?.limitMs ?? limits.timeout);
}
