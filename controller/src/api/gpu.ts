// GPUs and the workloads on them.
import {
  deviceWithoutMps,
  gpuShareTooLarge,
  malformedContent,
  noGpu,
  noSuchDevice,
  noSuchEntity,
} from '@gpuwhisk/common/errors';
import type { Device, CordonRequest, NodeStatus, Workload, DeviceStatus, Resident } from '@gpuwhisk/common/gpu';
import { standingOf } from '@gpuwhisk/gpu/view/workload-standing';
import type { TrainingStatus } from '@gpuwhisk/common/training';
import { gpuTypeOf } from '@gpuwhisk/gpu/ledger/places';
import { textOfSet } from '../gpu/scheduler/tried-sets.js';
import type { SetBeside, TriedSets } from '../gpu/scheduler/tried-sets.js';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject } from '@gpuwhisk/common/json';
import { workloadTokenVariable } from '@gpuwhisk/common/workload-guard';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { readPutBody } from '../http/request.js';
import type { ApiContext } from './api-context.js';
import { readNewWorkload, readWorkloadChanges } from './gpu-workload-bodies.js';
import type { NewWorkload } from './gpu-workload-bodies.js';
import { errorResponses, pathParameters } from './descriptions.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { IdentifiedCall, Route, ViewerCall } from '../http/route.js';

type Context = Pick<
  ApiContext,
  'clock' | 'config' | 'gpuCordons' | 'gpuScheduler' | 'gpuTable' | 'gpuWorkloads' | 'trainingJobs'
>;

/** Longest request body of this API, bytes. */
const maxBodyBytes = 16 * 1024;

/** The node and device of a workload. */
interface DevicePlace {
  node: NodeStatus;
  device: Device;
}

/** The device that the caller names, or else the healthy device with the most free memory. Throws ApiError (404, 503). */
function devicePlace(nodes: readonly NodeStatus[], wanted: string | undefined): DevicePlace {
  const places = nodes.flatMap((node) => node.devices.map((device) => ({ node, device })));
  const named = places.find(({ device }) => device.uuid === wanted);
  if (wanted !== undefined && named === undefined) throw noSuchDevice(wanted);
  const [roomiest] = places
    .flatMap((place) => {
      const status = place.node.status.find(({ uuid }) => uuid === place.device.uuid);
      const isUsable = status?.health.state === 'healthy' && place.device.mode !== 'mig';
      return isUsable ? [{ place, freeMiB: place.device.memoryMiB - status.usedMemoryMiB }] : [];
    })
    .sort((one, other) => other.freeMiB - one.freeMiB);
  const place = named ?? roomiest?.place;
  if (place === undefined) throw noGpu();
  return place;
}

/** The environment that makes a process an MPS client of the device, with its bounds. Throws ApiError (409). */
function clientEnv({ node, device }: DevicePlace, { memoryMiB, mpsPercent }: NewWorkload): Record<string, string> {
  const env = node.clientEnv?.[device.uuid];
  if (env === undefined) throw deviceWithoutMps(device.uuid);
  return {
    ...env,
    ...(mpsPercent !== undefined && { CUDA_MPS_ACTIVE_THREAD_PERCENTAGE: String(mpsPercent) }),
    // The process sees this device only, as number 0.
    ...(memoryMiB !== undefined && { CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: `0=${memoryMiB}M` }),
  };
}

/** A workload yet to be started, limited to its namespace's GPU share. Throws ApiError (429). */
function boundedWorkload(context: Context, call: IdentifiedCall, asked: NewWorkload): NewWorkload {
  const most = call.identity.limits.maxGpuShare ?? context.config.limits.maxGpuShare;
  if (!asked.start || most === undefined) return asked;
  if ((asked.mpsPercent ?? 0) > most) throw gpuShareTooLarge(asked.mpsPercent ?? 0, most);
  return { ...asked, mpsPercent: asked.mpsPercent ?? most };
}

/**
 * The least bound that the caller may set for a process that was not started under a share, fraction 0–1: with a quota of
 * 30 %, the loss of the other 70 % of a GPU is not protected against.
 */
function leastBound({ config }: Context, { identity, isOperator }: ViewerCall): number {
  return isOperator ? 0 : 1 - (identity.limits.maxGpuShare ?? config.limits.maxGpuShare ?? 100) / 100;
}

async function registerWorkload(context: Context, call: ViewerCall): Promise<Answer> {
  const { gpuTable, gpuWorkloads, clock } = context;
  const asked = boundedWorkload(context, call, readNewWorkload(await readPutBody(call.request, maxBodyBytes)));
  const place = devicePlace(gpuTable.nodes(), asked.device);
  const env = asked.start ? clientEnv(place, asked) : undefined;
  const { name, pid, memoryMiB, mpsPercent, baselineRate, command, features: figures } = asked;
  const { added, token } = await gpuWorkloads.add({
    name,
    origin: asked.start ? 'started' : 'registered',
    invoker: place.node.invoker,
    device: place.device.uuid,
    ...(pid !== undefined && { pid }),
    since: clock.now(),
    ...(memoryMiB !== undefined && { memoryMiB }),
    ...(mpsPercent !== undefined && { mpsPercent }),
    maxDegradation: Math.max(asked.maxDegradation, asked.start ? 0 : leastBound(context, call)),
    ...(baselineRate !== undefined && { baselineRate, baselineFrom: 'declared' }),
    namespace: call.identity.namespace.name,
    ...(call.isOperator && { guard: { byOperator: true } }),
    ...(command !== undefined && { command }),
    ...(figures && { features: figures }),
  });
  const started = env && { env: { ...env, ...(token !== undefined && { [workloadTokenVariable]: token }) } };
  return jsonAnswer({ ...workloadView(added, context), ...started });
}

const cordonRequests: readonly CordonRequest['wish'][] = ['cordon', 'drain', 'uncordon'];

/** Stores a cordon request. Throws ApiError (400, 404, 409). */
async function setCordon({ gpuTable, gpuCordons }: Context, call: IdentifiedCall): Promise<Answer> {
  const uuid = pathParameter(call, 'uuid');
  const body = await readPutBody(call.request, maxBodyBytes);
  const wanted = isJsonObject(body) ? cordonRequests.find((wish) => wish === body.wish) : undefined;
  if (wanted === undefined || Object.keys(body as JsonObject).length !== 1) {
    throw malformedContent(`'wish' must be one of ${cordonRequests.join(', ')}, and nothing else`);
  }
  const isKnown = gpuTable.nodes().some(({ devices }) => devices.some((device) => device.uuid === uuid));
  if (!isKnown) throw noSuchDevice(uuid);
  return jsonAnswer({ uuid, ...(await gpuCordons.set(uuid, wanted)) });
}

/** Routes to the GPUs of the cluster and to their workloads. */
export function gpuRoutes(context: Context): Route[] {
  const { gpuTable, gpuWorkloads } = context;
  const viewerOf = ({ identity, isOperator }: ViewerCall): Viewer => ({
    namespace: identity.namespace.name,
    isOperator,
  });
  /** The workloads that the caller may see. */
  const seenWorkloads = async (call: ViewerCall): Promise<JsonObject[]> => {
    const all = allWorkloads(gpuTable.nodes(), await gpuWorkloads.list());
    const seen = all.filter((workload) => maySee(viewerOf(call), workload));
    const attested = gpuWorkloads.attested();
    return seen.map((one) => workloadView(gpuWorkloads.withRates(one), context, attested));
  };
  /** A registered workload that the caller may change. Throws ApiError (404). */
  const ownWorkload = async (call: ViewerCall): Promise<Workload> => {
    const workload = await gpuWorkloads.get(pathParameter(call, 'id'));
    if (!maySee(viewerOf(call), workload)) throw noSuchEntity();
    return workload;
  };
  const shared = { access: 'viewer', tag: 'GPUs' } as const;
  const all = { ...shared, path: `${apiRoot}/gpu/workloads` };
  const one = { ...shared, path: `${all.path}/{id}`, parameters: pathParameters({ id: 'Id of the workload' }) };
  const workload = { 200: { description: 'The workload', schema: 'GpuWorkload' } } as const;
  return [
    {
      ...shared,
      method: 'GET',
      path: `${apiRoot}/gpu/devices`,
      operationId: 'getGpuDevices',
      summary: 'The GPUs and what is on them',
      responses: { 200: { description: 'Devices', schema: { arrayOf: 'GpuDevice' } }, ...errorResponses(401, 500) },
      handle: async (call: ViewerCall) => {
        const [workloads, trainings] = await Promise.all([seenWorkloads(call), context.trainingJobs.statuses()]);
        const sets = context.gpuScheduler.triedSets();
        return jsonAnswer(devicesView(gpuTable.nodes(), { workloads, trainings, sets }, viewerOf(call)));
      },
    },
    {
      ...shared,
      access: 'operator',
      method: 'PUT',
      path: `${apiRoot}/gpu/devices/{uuid}`,
      parameters: pathParameters({ uuid: 'UUID of the device' }),
      operationId: 'setGpuWish',
      summary: 'Take a device out of use, or into use again (operators)',
      body: { schema: 'GpuWish', required: true },
      responses: {
        200: { description: 'Cordon request of the device', schema: 'GpuWish' },
        ...errorResponses(400, 401, 403, 404, 409, 500),
      },
      handle: (call: IdentifiedCall) => setCordon(context, call),
    },
    {
      ...all,
      method: 'GET',
      operationId: 'getGpuWorkloads',
      summary: 'Processes on GPUs that are no functions',
      responses: { 200: { description: 'Workloads', schema: { arrayOf: 'GpuWorkload' } }, ...errorResponses(401, 500) },
      handle: async (call: ViewerCall) => jsonAnswer(await seenWorkloads(call)),
    },
    {
      ...all,
      method: 'POST',
      operationId: 'addGpuWorkload',
      summary: 'Register a workload, so that it is protected',
      body: { schema: 'NewGpuWorkload', required: true },
      responses: { ...workload, ...errorResponses(400, 401, 404, 409, 429, 500, 503) },
      handle: (call: ViewerCall) => registerWorkload(context, call),
    },
    {
      ...one,
      method: 'PUT',
      operationId: 'updateGpuWorkload',
      summary: 'Set the process or the bound of a workload, or report its rates',
      body: { schema: 'GpuWorkloadChanges', required: true },
      responses: { ...workload, ...errorResponses(400, 401, 404, 409, 500) },
      handle: async (call: ViewerCall) => {
        const { rate, stalled, ...changes } = readWorkloadChanges(await readPutBody(call.request, maxBodyBytes));
        let changed = await ownWorkload(call);
        if (changes.maxDegradation !== undefined && changed.origin === 'registered') {
          changes.maxDegradation = Math.max(changes.maxDegradation, leastBound(context, call));
        }
        if (Object.keys(changes).length > 0) changed = await gpuWorkloads.change(changed.id, changes);
        if (rate !== undefined) changed = await gpuWorkloads.report(changed.id, rate, stalled);
        return jsonAnswer(workloadView(changed, context));
      },
    },
    {
      ...one,
      method: 'DELETE',
      operationId: 'deleteGpuWorkload',
      summary: 'Delete the registration of a workload; its process continues',
      responses: { ...workload, ...errorResponses(401, 404, 409, 500) },
      handle: async (call: ViewerCall) => {
        const workload = await ownWorkload(call);
        await gpuWorkloads.remove(workload.id);
        return jsonAnswer(workloadView(workload, context));
      },
    },
  ];
}

/**
 * The caller of a view. Operators see everything. Other callers see their namespace's part, and the amounts that others use
 * without names.
 */
interface Viewer {
  namespace: string;
  isOperator: boolean;
}

/** The workloads of the cluster: registered ones, and processes that belong to no container and no registration. */
function allWorkloads(nodes: readonly NodeStatus[], registered: readonly Workload[]): Workload[] {
  const ids = new Set(registered.map(({ id }) => id));
  const known = new Set(registered.map(({ invoker, pid }) => `${invoker} ${pid}`));
  const discovered = nodes.flatMap((node) =>
    node.status.flatMap(({ uuid: device, processes }) =>
      processes
        .filter(
          ({ container, pid, workload = '' }) =>
            container === undefined && !known.has(`${node.invoker} ${pid}`) && !ids.has(workload),
        )
        .map(({ pid, memoryMiB }): Workload => {
          const name = `process ${pid}`;
          const id = `${node.invoker}-${pid}`;
          return {
            id,
            name,
            origin: 'discovered',
            invoker: node.invoker,
            device,
            pid,
            since: node.at,
            memoryMiB,
            maxDegradation: 0,
          };
        }),
    ),
  );
  return [...registered, ...discovered];
}

/** Whether a viewer may see a workload. */
function maySee(viewer: Viewer, workload: Workload): boolean {
  return viewer.isOperator || workload.namespace === viewer.namespace;
}

/** A workload with its degradation and its present standing, and, if it is a namespace's, whether it is attested. */
function workloadView(
  workload: Workload,
  { gpuWorkloads, clock }: Context,
  attested: ReadonlySet<string> = gpuWorkloads.attested(),
): JsonObject {
  const { guard, ...shown } = workload;
  const isNamespaces = workload.origin !== 'discovered' && guard?.byOperator !== true;
  return {
    ...shown,
    ...(isNamespaces && { attested: attested.has(workload.id) }),
    ...standingOf(workload, clock.now()),
  };
}

/** What is shown of the devices besides their rows: workloads, runs of training jobs by job, and sets of functions that were tried. */
interface Tenants {
  workloads: readonly JsonObject[];
  sets: TriedSets;
  trainings: ReadonlyMap<string, TrainingStatus>;
}

/** The devices of the cluster with the tenants that the viewer may see. */
function devicesView(nodes: readonly NodeStatus[], beside: Tenants, viewer: Viewer): JsonObject[] {
  return nodes.flatMap((node) => node.devices.map((device) => deviceView(node, device, beside, viewer)));
}

function deviceView(node: NodeStatus, device: Device, beside: Tenants, viewer: Viewer): JsonObject {
  const status = node.status.find(({ uuid }) => uuid === device.uuid);
  const { state, reasons } = status?.health ?? { state: 'offline', reasons: ['nothing is known of it'] };
  const { slices, ...fixed } = device;
  const residents = node.residents.filter((one) => one.device === device.uuid);
  // Slices have states of their own.
  const { launches } = residents.find((one) => one.slice === undefined && one.launches !== undefined) ?? {};
  return {
    invoker: node.invoker,
    ...fixed,
    slices: slices.map((slice) => ({ ...slice })),
    ...(status !== undefined && figuresOf(status)),
    // The reasons may name functions and processes of other namespaces.
    health: viewer.isOperator ? { state, reasons } : { state },
    ...(launches !== undefined && { tokenState: launches.state }),
    ...(viewer.isOperator && status?.cut !== undefined && { cut: { ...status.cut } }),
    functions: residents.map((one) => ({
      ...functionView(one, beside, viewer),
      ...setsView(one, device, residents, beside.sets, viewer),
    })),
    workloads: beside.workloads.filter((one) => one.device === device.uuid),
  };
}

/** Figures of a device that its status may lack. */
const figures = ['utilisation', 'smActivity', 'dramActivity', 'temperatureC', 'powerW', 'contextMiB'] as const;

function figuresOf(status: DeviceStatus): JsonObject {
  const known: JsonObject = { usedMemoryMiB: status.usedMemoryMiB };
  for (const name of figures) {
    const { [name]: value } = status;
    if (value !== undefined) known[name] = value;
  }
  return known;
}

function functionView(resident: Resident, { trainings }: Tenants, viewer: Viewer): JsonObject {
  const { action, namespace, container, slice, share, memoryMiB, heldMiB, activations, launches } = resident;
  // A pre-warmed container has no namespace yet.
  const named = viewer.isOperator || namespace === undefined || namespace === viewer.namespace;
  const training = named ? trainingView(container, trainings) : undefined;
  // Assigned one by one: with thousands of instances, spreads are most of the time that this view takes.
  const view: JsonObject = {};
  if (named) view.container = container;
  if (named && action !== undefined) view.action = action;
  if (named && namespace !== undefined) view.namespace = namespace;
  if (slice !== undefined) view.slice = slice;
  view.share = share.shareClass / 100;
  view.smRequest = share.smRequest;
  view.smLimit = share.smLimit;
  view.memoryMiB = memoryMiB;
  if (heldMiB !== undefined) view.heldMiB = heldMiB;
  if (named && launches !== undefined) view.launches = { ...launches };
  view.running = activations.length;
  if (training !== undefined) view.training = training;
  return view;
}

/** The sets that a function was tried in with others that have instances on its place. */
function setsView(
  { action, namespace, slice }: Resident,
  device: Device,
  residents: readonly Resident[],
  sets: TriedSets,
  viewer: Viewer,
): JsonObject {
  if (action === undefined || !(viewer.isOperator || namespace === viewer.namespace)) return {};
  const there = new Set<string>();
  for (const one of residents) if (one.slice === slice && one.action !== undefined) there.add(one.action);
  const nameOf = (name: string): string =>
    viewer.isOperator || name.startsWith(`/${viewer.namespace}/`) ? name : 'a function of another namespace';
  const gpuType = gpuTypeOf(
    device,
    device.slices.find(({ uuid }) => uuid === slice),
  );
  const told = sets.of({ gpuType, mode: device.mode }, action, there);
  return told.length === 0 ? {} : { sets: told.map((set) => setView(set, nameOf)) };
}

function setView(set: SetBeside, nameOf: (name: string) => string): JsonObject {
  const { state, runs, others, gain, slowdown, until } = set;
  return {
    ...{ beside: others.map(nameOf), state, runs },
    ...(gain !== undefined && { gain }),
    ...(slowdown !== undefined && { slowdown }),
    ...(until !== undefined && { until }),
    text: textOfSet(set, nameOf),
  };
}

/** The training job that runs in a container, with its progress; undefined if none does. */
function trainingView(container: string, trainings: Tenants['trainings']): JsonObject | undefined {
  for (const [job, { container: own, attempt, steps, rate, stalled }] of trainings) {
    if (own !== container) continue;
    const known = Object.entries({ steps, rate, stalled }).filter(([, value]) => value !== undefined);
    return { job, attempt, ...(Object.fromEntries(known) as JsonObject) };
  }
  return undefined;
}
