// Nodes, their announced ends, and the machines that the platform rents.
import { malformedContent, noSuchNode, nothingRented, overloaded } from '@gpuwhisk/common/errors';
import { gpuNoticeTable } from '@gpuwhisk/common/gpu-nodes';
import type { NodeNotice } from '@gpuwhisk/common/gpu-nodes';
import type { NodeStatus } from '@gpuwhisk/common/gpu';
import { isJsonObject } from '@gpuwhisk/common/json';
import type { JsonObject, JsonValue } from '@gpuwhisk/common/json';
import { StateUnavailableError } from '@gpuwhisk/common/state/cluster-state';
import type { Answer } from '../http/answer.js';
import { jsonAnswer } from '../http/answer.js';
import { readPutBody } from '../http/request.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { Route } from '../http/route.js';
import type { IdentifiedCall } from '../http/route.js';
import type { Machine } from '../gpu/procure/machines.js';
import { machineLabel } from '../gpu/procure/procurement.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters } from './descriptions.js';

type Context = Pick<ApiContext, 'clock' | 'gpuTable' | 'procurement' | 'state'>;

const maxBodyBytes = 1024;
/** Longest time of a notice, s, and most rented nodes. */
const [maxNoticeS, maxNodes] = [30 * 86_400, 10_000];

/** A number of the body, its only field. Throws ApiError (400). */
async function readNumber({ request }: IdentifiedCall, field: string, most: number): Promise<number> {
  const body = await readPutBody(request, maxBodyBytes);
  const value = isJsonObject(body) ? body[field] : undefined;
  const isSound = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= most;
  if (isSound && Object.keys(body as JsonObject).length === 1) return value;
  throw malformedContent(`'${field}' must be a whole number from 0 to ${most}, and nothing else`);
}

function nodeView(row: NodeStatus, notice: NodeNotice | undefined, machine: Machine | undefined): JsonObject {
  const { invoker, labels = {}, market, pricePerHour, devices, residents } = row;
  const price = machine?.pricePerHour ?? pricePerHour;
  return {
    invoker,
    state: notice === undefined ? 'ready' : 'leaving',
    labels,
    ...(market !== undefined && { market }),
    ...(price !== undefined && { pricePerHour: price }),
    ...(notice !== undefined && { why: notice.why }),
    ...(notice?.leavesAt !== undefined && { leavesAt: notice.leavesAt }),
    ...(machine !== undefined && { machine: machine.machine ?? machine.id }),
    devices: devices.map(({ uuid }) => uuid),
    running: residents.reduce((sum, { activations }) => sum + activations.length, 0),
  };
}

/** Nodes that report, then machines that do not. */
async function nodesView({ gpuTable, procurement, state }: Context): Promise<JsonValue> {
  const [notices, machines] = await Promise.all([state.rows(gpuNoticeTable), procurement?.list() ?? []]);
  const rows = gpuTable.nodes();
  const machineOf = ({ labels }: NodeStatus): Machine | undefined =>
    machines.find(({ id }) => id === labels?.[machineLabel]);
  const nodes = rows.map((row) =>
    nodeView(row, notices.get(row.invoker) as unknown as NodeNotice | undefined, machineOf(row)),
  );
  const shown = new Set(rows.map((row) => machineOf(row)?.id));
  const others = machines
    .filter(({ id }) => !shown.has(id))
    .map(({ id, market, state: at, machine = id, pricePerHour, node, leavesAt }) => ({
      ...(node !== undefined && { invoker: node }),
      state: at === 'rented' ? (node === undefined ? 'booting' : 'silent') : at,
      labels: {},
      market,
      ...(pricePerHour !== undefined && { pricePerHour }),
      ...(leavesAt !== undefined && { leavesAt }),
      machine,
      devices: [],
      running: 0,
    }));
  const wanted = await procurement?.wantedNodes();
  return { ...(wanted !== undefined && { wanted }), nodes: [...nodes, ...others] };
}

/** The result of work on the cluster's state. Throws ApiError (503) while the state is out of reach. */
export async function whileReachable<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof StateUnavailableError) throw overloaded();
    throw error;
  }
}

/** Routes to nodes, for operators. */
export function gpuNodeRoutes(context: Context): Route[] {
  const { gpuTable, state, clock, procurement } = context;
  const shared = { access: 'operator', tag: 'GPUs' } as const;
  const notice = {
    ...shared,
    path: `${apiRoot}/gpu/nodes/{invoker}/notice`,
    parameters: pathParameters({ invoker: 'Topic of the invoker on the node' }),
  };
  /** The node that the path names. Throws ApiError (404). */
  const nodeOf = (call: IdentifiedCall): string => {
    const name = pathParameter(call, 'invoker');
    if (!gpuTable.nodes().some(({ invoker }) => invoker === name)) throw noSuchNode(name);
    return name;
  };
  return [
    {
      ...shared,
      method: 'GET',
      path: `${apiRoot}/gpu/nodes`,
      operationId: 'getGpuNodes',
      summary: 'Nodes with GPUs and rented machines (operators)',
      responses: { 200: { description: 'Nodes', schema: 'GpuNodes' }, ...errorResponses(401, 403, 500, 503) },
      handle: async () => jsonAnswer(await whileReachable(nodesView(context))),
    },
    {
      ...shared,
      method: 'PUT',
      path: `${apiRoot}/gpu/nodes`,
      operationId: 'setWantedGpuNodes',
      summary: 'Set how many rented nodes there are to be (operators)',
      body: { schema: 'GpuWantedNodes', required: true },
      responses: {
        200: { description: 'Nodes to be rented', schema: 'GpuWantedNodes' },
        ...errorResponses(400, 401, 403, 409, 500),
      },
      handle: async (call: IdentifiedCall) => {
        const wanted = await readNumber(call, 'wanted', maxNodes);
        if (procurement === undefined) throw nothingRented();
        await procurement.setWanted(wanted);
        return jsonAnswer({ wanted });
      },
    },
    {
      ...notice,
      method: 'PUT',
      operationId: 'setGpuNodeNotice',
      summary:
        'Announce that a node will be taken away: it takes no new work, and what runs there ends in time (operators)',
      body: { schema: 'GpuNodeNotice', required: true },
      responses: {
        200: { description: 'Notice of the node', schema: 'GpuNodeNoticed' },
        ...errorResponses(400, 401, 403, 404, 500, 503),
      },
      handle: async (call: IdentifiedCall): Promise<Answer> => {
        const inS = await readNumber(call, 'inS', maxNoticeS);
        const invoker = nodeOf(call);
        const at = clock.now();
        const row: NodeNotice = { why: 'revoked', at, leavesAt: at + inS * 1000 };
        await whileReachable(state.setRow(gpuNoticeTable, invoker, row as unknown as JsonValue));
        return jsonAnswer({ invoker, ...row });
      },
    },
    {
      ...notice,
      method: 'DELETE',
      operationId: 'withdrawGpuNodeNotice',
      summary: 'Withdraw the notice of a node, which takes work again (operators)',
      responses: { 200: { description: 'The node has no notice' }, ...errorResponses(401, 403, 404, 500, 503) },
      handle: async (call: IdentifiedCall): Promise<Answer> => {
        const invoker = nodeOf(call);
        await whileReachable(state.deleteRow(gpuNoticeTable, invoker));
        return jsonAnswer({ invoker });
      },
    },
  ];
}
