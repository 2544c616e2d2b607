import type { WhiskAction } from '@gpuwhisk/common/entities/action';
import { actionDocument, readAction } from '@gpuwhisk/common/entities/action';
import { storeCode } from '@gpuwhisk/common/entities/exec-codec';
import type { Identity } from '@gpuwhisk/common/entities/identity';
import { bumpPatch, firstVersion } from '@gpuwhisk/common/entities/names';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import type { ArtifactStore } from '@gpuwhisk/common/store/artifact-store';
import type { Random } from '@gpuwhisk/common/system/random';
import type { GuestAnswer, SimulatedGuest } from '@gpuwhisk/invoker/containers/simulated-factory';
import type { Ledger } from './ledger.js';

/** The runtime kind of all actions. */
export const kind = 'nodejs:20';

/** Identities of the callers. */
export const identities: readonly Identity[] = [
  ['alpha', 'alpha'],
  ['beta', 'beta'],
  ['guest of alpha', 'alpha'],
].map(([subject = '', name = '']) => ({
  subject,
  namespace: { name, uuid: `${name}-uuid` },
  authkey: { api_key: `${name}-uuid:key` },
  rights: ['READ', 'PUT', 'DELETE', 'ACTIVATE'],
  limits: {},
}));

interface ActionPlan {
  name: string;
  timeoutMs: number;
  memoryMiB: number;
  concurrency?: number;
  idempotent?: boolean;
  /** Behaviour of the action's code at its load. */
  init?: GuestAnswer['then']['do'];
  initMs?: number;
  gpu?: JsonObject;
}

const plans: readonly ActionPlan[] = [
  { name: 'plain', timeoutMs: 1000, memoryMiB: 128 },
  { name: 'impatient', timeoutMs: 150, memoryMiB: 128, initMs: 60 },
  { name: 'idempotent', timeoutMs: 1000, memoryMiB: 128, idempotent: true },
  { name: 'parallel', timeoutMs: 1000, memoryMiB: 256, concurrency: 4 },
  { name: 'large', timeoutMs: 3000, memoryMiB: 384, initMs: 300 },
  { name: 'unloadable', timeoutMs: 500, memoryMiB: 128, init: 'error' },
  { name: 'dead-on-load', timeoutMs: 500, memoryMiB: 128, init: 'exit' },
  { name: 'stuck-on-load', timeoutMs: 400, memoryMiB: 128, init: 'hang' },
  { name: 'too-large', timeoutMs: 500, memoryMiB: 4096 },
];
/** Of a device's 40,960 MiB a twentieth is reserved and never given to functions. */
const gpuPlans: readonly ActionPlan[] = [
  { name: 'gpu-batch', timeoutMs: 1000, memoryMiB: 128, gpu: { memoryMiB: 8000, batch: 4 } },
  { name: 'gpu-large', timeoutMs: 2000, memoryMiB: 128, gpu: { memoryMiB: 30_000, sloMs: 1000 } },
  {
    name: 'gpu-share',
    timeoutMs: 500,
    memoryMiB: 128,
    gpu: { memoryMiB: 12_000, mpsPercent: 25, isolation: 'shared' },
  },
  { name: 'gpu-alone', timeoutMs: 500, memoryMiB: 128, gpu: { memoryMiB: 4000, isolation: 'exclusive', sloMs: 300 } },
];
const allPlans = [...plans, ...gpuPlans];

/** Chooses an action. Most calls go to the first ones; with GPUs, half of all calls go to functions that need one. */
export function chooseAction(actions: readonly WhiskAction[], random: Random, hasGpus: boolean): WhiskAction {
  const gpuActions = actions.slice(plans.length);
  if (hasGpus && random.uint32() % 2 === 0) return gpuActions[random.uint32() % gpuActions.length] as WhiskAction;
  const among = random.uint32() % 10 < 7 ? Math.min(5, plans.length) : plans.length;
  return actions[random.uint32() % among] as WhiskAction;
}

function newVersion(plan: ActionPlan, version: string, revision: string, random: Random): WhiskAction {
  const { name, timeoutMs, memoryMiB, concurrency = 1, idempotent = false, init = 'result', initMs = 10, gpu } = plan;
  const code = storeCode(JSON.stringify({ name, version, init, initMs }), false, random);
  return {
    namespace: 'alpha/shared',
    name,
    exec: { kind, code: code.reference, binary: false },
    parameters: [{ key: 'fixed', value: name }],
    limits: { timeout: timeoutMs, memory: memoryMiB, logs: 1, concurrency },
    version,
    publish: true,
    annotations: [{ key: 'idempotent', value: idempotent }, ...(gpu === undefined ? [] : [{ key: 'gpu', value: gpu }])],
    updated: 0,
    revision,
  };
}

/** Stores the first version of every action. */
export async function createActions(store: ArtifactStore, random: Random): Promise<void> {
  for (const plan of allPlans) await store.put('whisks', actionDocument(newVersion(plan, firstVersion, '', random)));
}

/** The actions as the store has them. */
export function readActions(store: ArtifactStore): Promise<WhiskAction[]> {
  return Promise.all(allPlans.map(async ({ name }) => readAction(await store.get('whisks', `alpha/shared/${name}`))));
}

/** Stores the next version of an action and resolves with it. */
export async function updateAction(store: ArtifactStore, action: WhiskAction, random: Random): Promise<WhiskAction> {
  const plan = allPlans.find(({ name }) => name === action.name) as ActionPlan;
  const next = newVersion(plan, bumpPatch(action.version), action.revision, random);
  return { ...next, revision: await store.put('whisks', actionDocument(next)) };
}

/** The payload of a call, drawn at random, which tells the action its behaviour. */
export function choosePayload(random: Random, serial: number): JsonObject {
  const what = ['error', 'exit', 'exhaust', 'hang', 'bye', 'application error', 'slow', 'slow', 'slow'];
  const act = random.uint32() % 2 === 0 ? what[random.uint32() % what.length] : 'answer';
  const ms = act === 'slow' ? 100 + (random.uint32() % 1200) : random.uint32() % 30;
  return { do: act ?? 'answer', ms, serial };
}

/**
 * The code of every action. Notes each run in the ledger, and checks that a container keeps its action until an unload
 * and its namespace forever.
 */
export function simulatedGuest(ledger: Ledger, random: Random): SimulatedGuest {
  const namespaces = new Map<string, string>();
  const sometimes = (...bad: GuestAnswer[]): GuestAnswer =>
    bad[random.uint32() % 30] ?? { afterMs: random.uint32() % 20, then: { do: 'result', value: {} } };
  const noAnswers: GuestAnswer[] = [{ then: { do: 'hang' } }, { then: { do: 'exit' } }];
  return {
    unload: () => sometimes(...noAnswers, { then: { do: 'error', error: 'a thread is left' } }),
    check: () => sometimes(...noAnswers, { then: { do: 'error', error: 'it is out of order' } }),
    init(request, memory, container) {
      const code = JSON.parse(request.code ?? '') as { name: string; version: string; init: string; initMs: number };
      const { __OW_NAMESPACE: namespace, __OW_ACTION_NAME: action, __OW_ACTION_VERSION: version } = request.env;
      ledger.check(memory.size === 0, `a container of ${String(memory.get('owner'))} is loaded again`);
      ledger.check(code.version === version, `${action} ${version} is loaded with the code of ${code.version}`);
      const had = namespaces.get(container);
      if (had !== undefined) ledger.reloads++;
      ledger.check(had === undefined || had === namespace, `a container of ${had} is loaded for ${namespace}`);
      namespaces.set(container, String(namespace));
      memory.set('owner', `${namespace} ${action} ${version}`);
      const { init, initMs } = code;
      if (init === 'error') return { afterMs: initMs, then: { do: 'error', error: 'it does not load' } };
      if (init === 'exit' || init === 'hang') return { afterMs: initMs, then: { do: init } };
      return { afterMs: initMs, then: { do: 'result', value: { ok: true } } };
    },
    run(request, memory) {
      ledger.runStarted(request);
      const owner = `${request.namespace} ${request.action_name} ${request.action_version}`;
      ledger.check(memory.get('owner') === owner, `a container of ${String(memory.get('owner'))} serves ${owner}`);
      const { value } = request;
      if (request.batch !== undefined && Array.isArray(value)) return answerToAll(value.filter(isJsonObject));
      return answerTo(isJsonObject(value) ? value : {});
    },
  };
}

/**
 * The answer to a batch: a request that ends the process or hangs does so for all; an error applies to its own request.
 */
function answerToAll(values: readonly JsonObject[]): GuestAnswer {
  const answers = values.map(answerTo);
  const afterMs = answers.reduce((sum, answer) => sum + (answer.afterMs ?? 0), 0);
  const entries: JsonValue[] = [];
  for (const { then } of answers) {
    if (then.do === 'result' || then.do === 'bye') entries.push(then.value);
    else if (then.do === 'error') entries.push(then.error);
    else return { afterMs, then };
  }
  return { afterMs, then: { do: 'result', value: entries } };
}

/** Every second run has its logs with its result, the others later. */
const logDelay = (serial: JsonValue | undefined): Pick<GuestAnswer, 'logsAfterMs'> =>
  Number(serial) % 2 === 0 ? {} : { logsAfterMs: 15 };

function answerTo(value: JsonObject): GuestAnswer {
  const afterMs = Number(value.ms);
  const answer = { served: value.serial ?? null, fixed: value.fixed ?? null };
  switch (value.do) {
    case 'error':
      return { afterMs, stderr: ['it failed'], then: { do: 'error', error: 'it failed' } };
    case 'exit':
    case 'exhaust':
    case 'hang':
      return { afterMs, then: { do: value.do } };
    case 'bye':
      return { afterMs, then: { do: 'bye', value: answer } };
    case 'application error':
      return { afterMs, then: { do: 'result', value: { error: 'no such thing' } } };
    default:
      return { afterMs, stdout: ['a line'], ...logDelay(value.serial), then: { do: 'result', value: answer } };
  }
}
