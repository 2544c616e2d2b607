import type { DeviceMode, NodeStatus } from '@gpuwhisk/common/gpu';
import { noSuchEntity } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import { jsonAnswer } from '../http/answer.js';
import type { ApiContext } from './api-context.js';
import { errorResponses, pathParameters } from './descriptions.js';
import type { FunctionPerformance, SetPerformance } from './gpu-performance-views.js';
import { apiRoot, pathParameter } from '../http/route.js';
import type { IdentifiedCall, Route, ViewerCall } from '../http/route.js';

/** Stands in a set for functions of other namespaces. */
const ofOthers = { function: '(of others)', version: '' };

/** Routes to performance data of functions and sets, and to the predictors trained on their runs. */
export function gpuPerformanceRoutes(
  context: Pick<ApiContext, 'gpuTable' | 'performanceData' | 'performanceViews' | 'clock'>,
): Route[] {
  const { performanceData, performanceViews, gpuTable, clock } = context;
  const mayName = (call: ViewerCall, name: string): boolean =>
    call.isOperator || name.startsWith(`/${call.identity.namespace.name}/`);
  /** The filter of the functions that the caller may read; undefined: all functions. */
  const readable = (call: ViewerCall): ((name: string) => boolean) | undefined =>
    call.isOperator ? undefined : (name) => mayName(call, name);
  const functions = (call: ViewerCall): JsonObject[] => {
    const held = heldMemory(gpuTable.nodes());
    return performanceViews.functions(readable(call)).map((one) => withMemory(one, held.get(one.function)));
  };
  /** Functions that run for the caller's namespace, or of all for operators. */
  const forecasts = (call: ViewerCall): JsonObject[] =>
    performanceData.forecasts
      .views(clock.now())
      .filter(({ namespace }) => call.isOperator || namespace === call.identity.namespace.name)
      .map((one) => ({ ...one }) as unknown as JsonObject);
  const quotas = (call: ViewerCall): JsonObject[] =>
    performanceViews.quotas(readable(call)).map((row) => quotaFor(row, (name) => mayName(call, name), call.isOperator));
  const forgets = (wasThere: boolean): ReturnType<typeof jsonAnswer> => {
    if (!wasThere) throw noSuchEntity();
    return jsonAnswer({ ok: true });
  };
  const shared = { tag: 'GPUs' } as const;
  const lists = { ...shared, access: 'viewer', method: 'GET' } as const;
  const deletes = { ...shared, access: 'operator', method: 'DELETE' } as const;
  const forgotten = { 200: { description: 'The data is deleted' }, ...errorResponses(401, 403, 404, 500) } as const;
  const listOf = <Schema extends 'GpuLearnedFunction' | 'GpuForecast' | 'GpuQuota' | 'GpuModel'>(
    description: string,
    schema: Schema,
  ) => ({ 200: { description, schema: { arrayOf: schema } }, ...errorResponses(401, 500) }) as const;
  return [
    {
      ...lists,
      path: `${apiRoot}/gpu/functions`,
      operationId: 'getGpuFunctions',
      summary: 'Performance data of functions that need a GPU',
      responses: listOf('By function and kind of GPU', 'GpuLearnedFunction'),
      handle: (call: ViewerCall) => Promise.resolve(jsonAnswer(functions(call))),
    },
    {
      ...deletes,
      path: `${apiRoot}/gpu/functions/{name}`,
      parameters: pathParameters({ name: '/namespace/action, percent-encoded' }),
      operationId: 'forgetGpuFunction',
      summary: 'Delete the learned data of a function and of all its sets (operators)',
      responses: forgotten,
      handle: (call: IdentifiedCall) =>
        Promise.resolve(forgets(performanceData.forgetFunction(pathParameter(call, 'name')))),
    },
    {
      ...lists,
      path: `${apiRoot}/gpu/forecasts`,
      operationId: 'getGpuForecasts',
      summary: 'Requests of functions by minute, and what a forecast expected',
      responses: listOf('By function that was called in the last day', 'GpuForecast'),
      handle: (call: ViewerCall) => Promise.resolve(jsonAnswer(forecasts(call))),
    },
    {
      ...lists,
      path: `${apiRoot}/gpu/quotas`,
      operationId: 'getGpuQuotas',
      summary: 'Measured shares of functions that run together',
      responses: listOf('By set of functions and kind of GPU', 'GpuQuota'),
      handle: (call: ViewerCall) => Promise.resolve(jsonAnswer(quotas(call))),
    },
    {
      ...deletes,
      path: `${apiRoot}/gpu/quotas/{id}`,
      parameters: pathParameters({ id: 'Id of the set, percent-encoded' }),
      operationId: 'forgetGpuQuota',
      summary: 'Delete the measured shares of a set (operators)',
      responses: forgotten,
      handle: (call: IdentifiedCall) =>
        Promise.resolve(forgets(performanceData.forgetQuota(pathParameter(call, 'id')))),
    },
    {
      ...lists,
      access: 'operator',
      path: `${apiRoot}/gpu/models`,
      operationId: 'getGpuModels',
      summary: 'Slowdown predictors in force (operators)',
      responses: { ...listOf('By kind of GPU', 'GpuModel'), ...errorResponses(403) },
      handle: () => Promise.resolve(jsonAnswer(performanceViews.models().map((model) => ({ ...model })))),
    },
    {
      ...lists,
      access: 'operator',
      path: `${apiRoot}/gpu/degradations`,
      operationId: 'getGpuDegradations',
      summary: 'Models of the degradation of pairs, their measurement, and pairs that drift (operators)',
      responses: {
        200: { description: 'Models, drifts and measurements', schema: 'GpuDegradations' },
        ...errorResponses(401, 403, 500),
      },
      handle: () => Promise.resolve(jsonAnswer(performanceViews.degradations() as unknown as JsonObject)),
    },
    {
      ...deletes,
      path: `${apiRoot}/gpu/models/{gpuType}/{mode}`,
      parameters: pathParameters({ gpuType: 'Short name of the model of GPU', mode: 'How it is shared' }),
      operationId: 'forgetGpuModel',
      summary: 'Delete the predictors of a kind of GPU, models of pairs included, and their training data (operators)',
      responses: forgotten,
      handle: (call: IdentifiedCall) => {
        const mode = pathParameter(call, 'mode') as DeviceMode;
        return Promise.resolve(forgets(performanceData.forgetModel({ gpuType: pathParameter(call, 'gpuType'), mode })));
      },
    },
  ];
}

/** Device memory of an instance, as in its agent's last row. */
interface Held {
  deviceType: string;
  heldMiB: number;
}

/** The memory of instances, by function. */
function heldMemory(nodes: readonly NodeStatus[]): Map<string, Held[]> {
  const found = new Map<string, Held[]>();
  for (const { devices, residents } of nodes) {
    const types = new Map(devices.map(({ uuid, type }) => [uuid, type]));
    for (const { action, device, heldMiB } of residents) {
      const deviceType = types.get(device);
      if (action === undefined || deviceType === undefined || heldMiB === undefined) continue;
      const held = found.get(action);
      if (held === undefined) found.set(action, [{ deviceType, heldMiB }]);
      else held.push({ deviceType, heldMiB });
    }
  }
  return found;
}

/** Adds to `one` the largest memory that an agent's last row shows for an instance on such a GPU. */
function withMemory(one: FunctionPerformance, held: readonly Held[] = []): JsonObject {
  const alike = held.filter(({ deviceType }) => one.gpuType.startsWith(deviceType)).map(({ heldMiB }) => heldMiB);
  return { ...(one as unknown as JsonObject), ...(alike.length > 0 && { heldMiB: Math.max(...alike) }) };
}

/** The view of a set for a caller. Operators and the owner of all functions also get its id, which names them. */
function quotaFor({ id, ...row }: SetPerformance, mayName: (name: string) => boolean, isOperator: boolean): JsonObject {
  const jobs = row.jobs.map((job) => (mayName(job.function) ? job : ofOthers));
  const { reason, ...search } = row.search;
  // The set's id and problems may name functions of other namespaces.
  const isOwn = isOperator || row.jobs.every((job) => mayName(job.function));
  const shown = { ...search, ...(isOwn && reason !== undefined && { reason }) };
  return { ...(isOperator && { id }), ...row, jobs, search: shown } as unknown as JsonObject;
}
