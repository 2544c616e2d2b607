// What the cluster runs now, what was on a device, and the processes of the cluster.
import { noSuchDevice } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { PastInstance } from '../gpu/state/device-history.js';
import { jsonAnswer } from '../http/answer.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { Route, ViewerCall } from '../http/route.js';
import { gpuLeaseName } from '../cluster/lease.js';
import { whileReachable } from './gpu-nodes.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters } from './descriptions.js';

type Context = Pick<
  ApiContext,
  'activity' | 'controllers' | 'deviceHistory' | 'gpuTable' | 'instance' | 'invokersHealth' | 'state'
>;

/** The present controllers and the invokers. Rejects with StateUnavailableError. */
async function clusterMembers({ controllers, instance, invokersHealth, state }: Context): Promise<JsonObject[]> {
  const own = `controller${instance}`;
  const decider = await state.currentLease(gpuLeaseName);
  const present = [...(controllers?.() ?? [own])].sort();
  return [
    ...present.map((id) => ({
      ...{ id, sort: 'controller', state: 'up' },
      ...{ decides: decider?.holder === id, answers: id === own },
    })),
    ...Object.entries(invokersHealth()).map(([id, health]) => ({ id, sort: 'invoker', state: health })),
  ];
}

/** Routes to what the cluster runs now, to what was on a device, and to the processes of the cluster. */
export function activityRoutes(context: Context): Route[] {
  const { activity, deviceHistory, gpuTable } = context;
  return [
    {
      access: 'viewer',
      tag: 'Activations',
      method: 'GET',
      path: `${apiRoot}/activity`,
      operationId: 'getActivity',
      summary: 'Ended activations of the last five minutes by second: how they started, failed and met their SLO',
      responses: {
        200: { description: 'Seconds, oldest first', schema: { arrayOf: 'ActivitySecond' } },
        ...errorResponses(401, 500),
      },
      handle: ({ identity, isOperator }: ViewerCall) => {
        const seconds = activity.recent(isOperator ? undefined : identity.namespace.name);
        // The id tells entries apart in a stream of changes.
        const entries = seconds.map(({ second, ...counts }) => ({ id: String(second), at: second * 1000, ...counts }));
        return Promise.resolve(jsonAnswer(entries));
      },
    },
    {
      access: 'viewer',
      tag: 'GPUs',
      method: 'GET',
      path: `${apiRoot}/gpu/devices/{uuid}/history`,
      parameters: pathParameters({ uuid: 'UUID of the device' }),
      operationId: 'getGpuDeviceHistory',
      summary: 'Use and instances of a device in the last ten minutes, and predicted against actual times of runs',
      responses: {
        200: { description: 'The history', schema: 'GpuDeviceHistory' },
        ...errorResponses(401, 404, 500),
      },
      handle: (call: ViewerCall) => {
        const uuid = pathParameter(call, 'uuid');
        const { samples, instances } = deviceHistory.of(uuid);
        const isKnown = gpuTable.nodes().some(({ devices }) => devices.some((device) => device.uuid === uuid));
        if (!isKnown && samples.length === 0) throw noSuchDevice(uuid);
        const { identity, isOperator } = call;
        const mayName = (namespace: string | undefined): boolean =>
          isOperator || namespace === undefined || namespace === identity.namespace.name;
        const history = {
          samples: samples.map((one) => ({ ...one })),
          instances: instances.map((one) => (mayName(one.namespace) ? { ...one } : unnamed(one))),
          runs: activity
            .runsOn(uuid)
            .filter(({ namespace }) => mayName(namespace))
            .map((run) => ({ ...run })),
        };
        return Promise.resolve(jsonAnswer(history as unknown as JsonObject));
      },
    },
    {
      access: 'operator',
      tag: 'Administration',
      method: 'GET',
      path: `${apiRoot}/admin/members`,
      operationId: 'getClusterMembers',
      summary: 'Controllers and invokers with their states (operators)',
      responses: {
        200: { description: 'Processes', schema: { arrayOf: 'ClusterMember' } },
        ...errorResponses(401, 403, 500, 503),
      },
      handle: async () => jsonAnswer(await whileReachable(clusterMembers(context))),
    },
  ];
}

/** An instance without what names its function. */
function unnamed({ slice, memoryMiB, smLimit, from, until }: PastInstance): Omit<PastInstance, 'container'> {
  return { ...(slice !== undefined && { slice }), memoryMiB, smLimit, from, ...(until !== undefined && { until }) };
}
