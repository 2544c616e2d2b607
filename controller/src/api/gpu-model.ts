// The model of a function as a resource: its instances are loaded, shown and unloaded (SMORE thesis, table 4.1).
import { instanceNotLaunched } from '@gpuwhisk/common/errors';
import type { Resident } from '@gpuwhisk/common/gpu';
import type { JsonObject } from '@gpuwhisk/common/json';
import { sleep } from '@gpuwhisk/common/system/clock';
import type { ResolvedAction } from '../actions/action-resolver.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { IdentifiedCall, Route } from '../http/route.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters } from './descriptions.js';
import { asLeader, graceOf, graceParameter, resolveGpuAction, startInstance } from './gpu-instances.js';

type Context = Pick<
  ApiContext,
  | 'actionResolver'
  | 'clock'
  | 'config'
  | 'gpuDesired'
  | 'gpuScheduler'
  | 'gpuTable'
  | 'manifest'
  | 'primitive'
  | 'throttles'
>;

/** A function on GPUs: an action, and the namespace that it runs for. */
interface GpuFunction {
  resolved: ResolvedAction;
  /** `/namespace/[package/]action`. */
  name: string;
  version: string;
  namespace: string;
}

/** The function that a request's path names. Throws ApiError (400, 403, 404). */
async function functionOf(context: Context, call: IdentifiedCall): Promise<GpuFunction> {
  const resolved = await resolveGpuAction(context, call, pathParameter(call, 'name'));
  const { namespace, name, version } = resolved.action;
  return { resolved, name: `/${namespace}/${name}`, version, namespace: call.identity.namespace.name };
}

/** An instance of a function. */
interface Instance {
  state: 'loading' | 'idle' | 'running' | 'draining';
  gpus: readonly string[];
  /** Class of its share, fraction of the SMs. */
  share: number;
  /** Device memory that it may hold on each of its GPUs, MiB. */
  memoryMiB: number;
  running: number;
  /** Its process, as its agent reports it; absent before its start. */
  process?: { invoker: string; resident: Resident };
}

function instancesOf({ gpuDesired, gpuScheduler, gpuTable }: Context, { name, namespace }: GpuFunction): Instance[] {
  const processes = new Map<string, { invoker: string; resident: Resident }>();
  for (const { invoker, residents } of gpuTable.nodes()) {
    for (const resident of residents) {
      if (!processes.has(resident.container)) processes.set(resident.container, { invoker, resident });
    }
  }
  return gpuScheduler
    .instances()
    .filter((one) => one.function === name && one.namespace === namespace)
    .map(({ id, state, gpus, share, memoryMiB, tasks }) => {
      const process = processes.get(id);
      const isRetiring = process !== undefined && gpuDesired.isRetiring(process.invoker, id);
      return {
        state: isRetiring ? 'draining' : state,
        gpus,
        share: share.class,
        memoryMiB,
        running: tasks.length,
        ...(process && { process }),
      };
    });
}

function instanceView({ state, gpus, share, memoryMiB, running, process }: Instance): JsonObject {
  const { container, version, heldMiB, loadMs, since, idleSince } = process?.resident ?? {};
  const known = { container, version, heldMiB, loadMs, since, idleSince };
  return {
    state,
    ...(process && { invoker: process.invoker }),
    gpus: [...gpus],
    share,
    memoryMiB,
    running,
    ...(Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined)) as JsonObject),
  };
}

/** A function's state and instances, and its requests that wait for a GPU at this controller. */
function modelView(context: Context, asked: GpuFunction): JsonObject {
  const { name, version, namespace } = asked;
  const waiting = context.gpuScheduler.queued().filter((one) => one.action === name && one.namespace === namespace);
  return {
    action: name,
    version,
    state: stateOf(context, asked),
    instances: instancesOf(context, asked).map(instanceView),
    waiting: waiting.length,
  };
}

/** The state of the function's present version: `loaded` if an instance serves it without a load. */
function stateOf(context: Context, asked: GpuFunction): 'loaded' | 'loading' | 'unloaded' {
  const instances = instancesOf(context, asked).filter(({ state, process }) => {
    const { version = asked.version } = process?.resident ?? {};
    return state !== 'draining' && version === asked.version;
  });
  if (instances.some(({ state, process }) => state !== 'loading' && process !== undefined)) return 'loaded';
  return instances.length > 0 ? 'loading' : 'unloaded';
}

/** Longest wait for the agent's row with a started instance, and the interval of looks, ms. */
const [rowWaitMs, rowLookMs] = [2000, 20];

/**
 * Launches an instance, and waits until its agent reports it: a deletion right after the answer must find it. Throws
 * ApiError (400, 429, 503).
 */
async function launch(context: Context, call: IdentifiedCall, asked: GpuFunction): Promise<void> {
  const { clock } = context;
  const outcome = await startInstance(context, call, asked.resolved, {});
  if (outcome.type === 'accepted') return;
  const untilMs = clock.monotonicMs() + rowWaitMs;
  while (stateOf(context, asked) !== 'loaded' && clock.monotonicMs() < untilMs) await sleep(clock, rowLookMs);
  if (stateOf(context, asked) === 'unloaded') throw instanceNotLaunched('it was removed for other work');
}

/**
 * Loads a function unless it is loaded or being loaded. Requests for one version that arrive during its launch share it:
 * `launches` has those under way.
 */
async function load(context: Context, call: IdentifiedCall, launches: Map<string, Promise<void>>): Promise<Answer> {
  await context.throttles.admit(call.identity);
  const asked = await functionOf(context, call);
  const key = `${asked.namespace} ${asked.name} ${asked.version}`;
  let launched = launches.get(key);
  if (launched === undefined && stateOf(context, asked) === 'unloaded') {
    launched = launch(context, call, asked).finally(() => launches.delete(key));
    launches.set(key, launched);
  }
  await launched;
  const model = modelView(context, asked);
  return jsonAnswer(model, model.state === 'loaded' ? 200 : 202);
}

/** Ends a function's instances, of any version, once nothing runs in them. */
async function unload(context: Context, call: IdentifiedCall): Promise<Answer> {
  const graceMs = graceOf(call);
  const asked = await functionOf(context, call);
  for (const { process } of instancesOf(context, asked)) {
    if (process === undefined) continue;
    await asLeader(context.gpuDesired.retire(process.invoker, process.resident.container, graceMs));
  }
  return jsonAnswer(modelView(context, asked));
}

/** Routes to the models of functions on GPUs. */
export function gpuModelRoutes(context: Context): Route[] {
  const launches = new Map<string, Promise<void>>();
  const shared = {
    access: 'identified',
    tag: 'GPUs',
    path: `${apiRoot}/gpu/functions/{name}/model`,
    parameters: pathParameters({
      name: "'/namespace/action', or the name of one of the caller's own; percent-encoded",
    }),
  } as const;
  const model = (description: string) => ({ description, schema: 'GpuFunctionModel' }) as const;
  return [
    {
      ...shared,
      method: 'GET',
      operationId: 'getGpuFunctionModel',
      summary: 'Instances of a function that have its model loaded, or load it',
      responses: { 200: model('Instances of the function'), ...errorResponses(400, 401, 403, 404, 500) },
      handle: async (call: IdentifiedCall) => jsonAnswer(modelView(context, await functionOf(context, call))),
    },
    {
      ...shared,
      method: 'POST',
      operationId: 'loadGpuFunctionModel',
      summary: 'Start an instance of a function with its model loaded, unless there is one',
      responses: {
        200: model('An instance has the model loaded'),
        202: model('An instance is still loading'),
        ...errorResponses(400, 401, 403, 404, 429, 500, 503),
      },
      handle: (call: IdentifiedCall) => load(context, call, launches),
    },
    {
      ...shared,
      method: 'DELETE',
      operationId: 'unloadGpuFunctionModel',
      summary: 'End all instances of a function as soon as nothing runs in them',
      parameters: [...shared.parameters, graceParameter],
      responses: { 200: model('The instances, which end'), ...errorResponses(400, 401, 403, 404, 500, 503) },
      handle: (call: IdentifiedCall) => unload(context, call),
    },
  ];
}
