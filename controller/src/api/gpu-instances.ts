import { ActivationStatus } from '@gpuwhisk/common/entities/activation';
import { parameterValue } from '@gpuwhisk/common/entities/parameters';
import {
  gpuNotCut,
  instanceNotChanged,
  instanceNotLaunched,
  malformedContent,
  malformedQuery,
  noSuchDevice,
  noSuchInstance,
} from '@gpuwhisk/common/errors';
import { shareClasses } from '@gpuwhisk/common/gpu';
import type { DesiredShare, NodeStatus, Resident } from '@gpuwhisk/common/gpu';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import { cutProblem } from '@gpuwhisk/gpu/stages/geometry/cut-problem';
import { geometryFault } from '@gpuwhisk/gpu/stages/geometry/mig-profiles';
import type { ResolvedAction } from '../actions/action-resolver.js';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { readPutBody } from '../http/request.js';
import type { InvokeOutcome, Launch } from '../invoke/invoke-service.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters } from './descriptions.js';
import { acceptedAnswer, checkInvocable } from '../http/invocation.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { IdentifiedCall, Route, RouteParameter, ViewerCall } from '../http/route.js';
import { parseActionName } from '../entities/action-name.js';

type Context = Pick<
  ApiContext,
  'actionResolver' | 'config' | 'gpuDesired' | 'gpuTable' | 'manifest' | 'primitive' | 'throttles'
>;

const maxBodyBytes = 16 * 1024;

interface LaunchBody extends Launch {
  action: string;
}

/** Reads the body of a launch. Throws ApiError (400). */
function readLaunch(body: unknown): LaunchBody {
  if (!isJsonObject(body)) throw malformedContent('JSON object expected');
  const unknown = Object.keys(body).find((key) => !['action', 'devices', 'mpsPercent'].includes(key));
  if (unknown !== undefined) throw malformedContent(`'${unknown}' is no field of a launch`);
  const { action, devices, mpsPercent } = body;
  if (typeof action !== 'string' || action === '') throw malformedContent("'action' must be the name of an action");
  const isList = Array.isArray(devices) && devices.length > 0 && devices.every((one) => typeof one === 'string');
  if (devices !== undefined && !isList) throw malformedContent("'devices' must be a list of UUIDs");
  const shareClass = shareClasses.find((one) => one === mpsPercent);
  if (mpsPercent !== undefined && shareClass === undefined) {
    throw malformedContent(`'mpsPercent' must be one of ${shareClasses.join(', ')}`);
  }
  return {
    action,
    ...(isList && { gpus: devices as string[] }),
    ...(shareClass !== undefined && { shareClass }),
  };
}

/** Reads the body of a change of share. Throws ApiError (400). */
function readShare(body: unknown): DesiredShare {
  const { smRequest, smLimit, ...rest } = isJsonObject(body) ? body : {};
  const isFraction = (value: unknown): value is number => typeof value === 'number' && value > 0 && value <= 1;
  if (!isFraction(smRequest) || !isFraction(smLimit) || smRequest > smLimit || Object.keys(rest).length > 0) {
    throw malformedContent("'smRequest' and 'smLimit' must be given, 0 < smRequest ≤ smLimit ≤ 1, and nothing else");
  }
  return { smRequest, smLimit };
}

/** `/NAMESPACE/[PACKAGE/]ACTION` from a name as a caller gives it. */
function fullNameOf({ identity }: IdentifiedCall, given: string): string {
  const own = identity.namespace.name;
  return given.startsWith('/') ? given.replace(/^\/_\//, `/${own}/`) : `/${own}/${given}`;
}

/** The action of this name, which the caller may invoke and which needs a GPU. Throws ApiError (400, 403, 404). */
export async function resolveGpuAction(
  { actionResolver }: Pick<ApiContext, 'actionResolver'>,
  call: IdentifiedCall,
  given: string,
): Promise<ResolvedAction> {
  const name = parseActionName(fullNameOf(call, given));
  if (name === undefined) throw malformedContent(`'${given}' is no action's name`);
  const resolved = await actionResolver.resolve(call.identity, name);
  const { annotations, exec } = resolved.action;
  if (parameterValue(annotations, 'gpu') === undefined) {
    throw malformedContent(`action '${given}' has no annotation 'gpu': it needs no GPU`);
  }
  if (exec.kind === 'sequence') throw malformedContent('a sequence has no instances');
  return resolved;
}

/**
 * Starts an instance and loads its code. The outcome is `accepted` if it still loads when a blocking caller's wait is over.
 * Throws ApiError (400, 429, 503).
 */
export async function startInstance(
  context: Pick<ApiContext, 'config' | 'manifest' | 'primitive'>,
  { identity, transactionId }: IdentifiedCall,
  resolved: ResolvedAction,
  launch: Launch,
): Promise<InvokeOutcome> {
  checkInvocable(resolved.action, {}, context.manifest());
  const waitMs = context.config.blockingWaitMs;
  const started = { ...resolved, identity, payload: {}, blocking: true, waitMs, transactionId, launch };
  const outcome = await context.primitive.invoke(started);
  if (outcome.type === 'accepted') return outcome;
  const { response } = outcome.activation;
  if (response.statusCode !== ActivationStatus.success) {
    const { error = 'the instance failed to start' } = (response.result ?? {}) as { error?: string };
    throw instanceNotLaunched(error.replace(/\.$/, ''));
  }
  return outcome;
}

async function launch(context: Context, call: ViewerCall): Promise<Answer> {
  await context.throttles.admit(call.identity);
  const { action: given, ...launch } = readLaunch(await readPutBody(call.request, maxBodyBytes));
  const outcome = await startInstance(context, call, await resolveGpuAction(context, call, given), launch);
  if (outcome.type === 'accepted') return acceptedAnswer(outcome.activationId);
  const gpu = parameterValue(outcome.activation.annotations, 'gpu');
  return jsonAnswer({ action: fullNameOf(call, given), ...(isJsonObject(gpu) && placeOf(gpu)) });
}

/** The place of a started instance, from its activation's annotation `gpu`. */
function placeOf(annotation: JsonObject): JsonObject {
  const place: JsonObject = {};
  for (const field of ['device', 'slice', 'share']) {
    const value = annotation[field];
    if (value !== undefined) place[field] = value;
  }
  return place;
}

/** An instance that the caller may change, with its node. Throws ApiError (404). */
function instanceOf({ gpuTable }: Context, call: ViewerCall): { invoker: string; resident: Resident } {
  const container = pathParameter(call, 'container');
  for (const { invoker, residents } of gpuTable.nodes()) {
    const resident = residents.find((one) => one.container === container);
    if (resident === undefined) continue;
    if (call.isOperator || resident.namespace === call.identity.namespace.name) return { invoker, resident };
  }
  throw noSuchInstance(container);
}

const maxGraceMs = 3_600_000;

/** The query parameter for the grace of a running activation. Throws ApiError (400). */
export function graceOf({ query }: IdentifiedCall): number | undefined {
  const text = query.get('graceMs');
  if (text === null) return undefined;
  const graceMs = /^\d{1,7}$/.test(text) ? Number(text) : Infinity;
  if (graceMs > maxGraceMs)
    throw malformedQuery('graceMs', `graceMs must be a number of milliseconds up to ${maxGraceMs}.`);
  return graceMs;
}

const maxSlices = 7;
const profileName = /^[1-9]\d*g\.[1-9]\d*gb(\+[a-z0-9.]+)?$/;

/** Reads the body of a change of geometry. Throws ApiError (400). */
function readGeometry(body: unknown): string[] {
  const { profiles, ...rest } = isJsonObject(body) ? body : {};
  const isName = (one: unknown): boolean => typeof one === 'string' && profileName.test(one);
  if (
    !Array.isArray(profiles) ||
    profiles.length > maxSlices ||
    !profiles.every(isName) ||
    Object.keys(rest).length > 0
  ) {
    throw malformedContent(`'profiles' must be a list of up to ${maxSlices} profiles like '3g.20gb', and nothing else`);
  }
  return profiles as string[];
}

/** The node of a device. Throws ApiError (404). */
function nodeOf({ gpuTable }: Context, uuid: string): NodeStatus {
  const node = gpuTable.nodes().find(({ devices }) => devices.some((device) => device.uuid === uuid));
  if (node === undefined) throw noSuchDevice(uuid);
  return node;
}

/** Waits for work that only the leader may do. Throws ApiError (503) if another controller is the leader. */
export async function asLeader(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    throw instanceNotChanged((error as Error).message);
  }
}

export const graceParameter: RouteParameter = {
  name: 'graceMs',
  in: 'query',
  type: 'integer',
  description: 'Stop a run after this many ms; an idempotent action runs again elsewhere',
};

/** Routes to instances of functions on GPUs, and to the geometry of devices. */
export function gpuInstanceRoutes(context: Context): Route[] {
  const shared = { access: 'viewer', tag: 'GPUs' } as const;
  const all = { ...shared, path: `${apiRoot}/gpu/instances` };
  const one = {
    ...shared,
    path: `${all.path}/{container}`,
    parameters: pathParameters({ container: 'Container of the instance' }),
  };
  return [
    {
      ...all,
      method: 'POST',
      operationId: 'launchGpuInstance',
      summary: 'Start an instance of a function and load its code before a request comes',
      body: { schema: 'GpuLaunch', required: true },
      responses: {
        200: { description: 'The instance waits for a request', schema: 'GpuLaunched' },
        202: { description: 'The instance is still loading', schema: 'ActivationId' },
        ...errorResponses(400, 401, 403, 404, 429, 500, 503),
      },
      handle: (call: ViewerCall) => launch(context, call),
    },
    {
      ...one,
      method: 'PUT',
      operationId: 'reshareGpuInstance',
      summary: 'Change the share of an instance within its class, on a GPU with kernel tokens',
      body: { schema: 'GpuShare', required: true },
      responses: {
        200: { description: 'Desired share of the instance', schema: 'GpuShare' },
        ...errorResponses(400, 401, 404, 500, 503),
      },
      handle: async (call: ViewerCall) => {
        const share = readShare(await readPutBody(call.request, maxBodyBytes));
        const { invoker, resident } = instanceOf(context, call);
        await asLeader(context.gpuDesired.reshare(invoker, resident.container, share));
        return jsonAnswer({ ...share });
      },
    },
    {
      ...one,
      method: 'DELETE',
      operationId: 'retireGpuInstance',
      summary: 'End an instance as soon as nothing runs in it',
      parameters: [...one.parameters, graceParameter],
      responses: { 200: { description: 'The instance ends' }, ...errorResponses(400, 401, 404, 500, 503) },
      handle: async (call: ViewerCall) => {
        const { invoker, resident } = instanceOf(context, call);
        const { container } = resident;
        await asLeader(context.gpuDesired.retire(invoker, container, graceOf(call)));
        return jsonAnswer({ container, running: resident.activations.length });
      },
    },
    {
      ...shared,
      access: 'operator',
      method: 'PUT',
      path: `${apiRoot}/gpu/devices/{uuid}/slices`,
      parameters: pathParameters({ uuid: 'UUID of the device' }),
      operationId: 'cutGpu',
      summary: 'Cut a device into MIG instances, once nothing runs on the replaced ones (operators)',
      body: { schema: 'GpuGeometry', required: true },
      responses: {
        200: { description: 'Desired slices of the device', schema: 'GpuGeometry' },
        ...errorResponses(400, 401, 403, 404, 500, 503),
      },
      handle: async (call: IdentifiedCall) => {
        const profiles = readGeometry(await readPutBody(call.request, maxBodyBytes));
        const uuid = pathParameter(call, 'uuid');
        const { invoker, cuts = true, devices } = nodeOf(context, uuid);
        const { type = '' } = devices.find((device) => device.uuid === uuid) ?? {};
        const fault = geometryFault(type, profiles);
        if (fault !== undefined) throw malformedContent(fault);
        const problem = cutProblem({ isManaged: cuts, foreign: 0 });
        if (problem !== undefined) throw gpuNotCut(problem);
        await asLeader(context.gpuDesired.cut(invoker, uuid, profiles));
        return jsonAnswer({ profiles });
      },
    },
  ];
}
