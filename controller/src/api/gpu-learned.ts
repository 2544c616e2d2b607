import type { DeviceMode, NodeStatus } from '@gpuwhisk/common/gpu';
import { noSuchEntity } from '@gpuwhisk/common/errors';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { LearnedFunction, LearnedQuota } from '../learned/learned-view.js';
import { jsonAnswer } from '../http/answer.js';
import type { ApiContext } from './dependencies.js';
import { errorResponses, pathParameters } from './descriptions.js';
import { forOperators } from './operators.js';
import { apiRoot, pathParameter } from './route.js';
import type { IdentifiedCall, Route } from './route.js';

/** Stands for functions of other namespaces in a set. */
const ofOthers = { function: '(of others)', version: '' };

/** What was learned of functions, of sets of them, and the predictors learned from their runs. */
export function gpuLearnedRoutes(context: ApiContext): Route[] {
  const { learned, gpuTable, config } = context;
  const isOperator = ({ identity }: IdentifiedCall): boolean => config.operators.includes(identity.subject);
  const mayName = (call: IdentifiedCall, name: string): boolean =>
    isOperator(call) || name.startsWith(`/${call.identity.namespace.name}/`);
  const functions = (call: IdentifiedCall): JsonObject[] =>
    learned
      .functions()
      .filter((one) => mayName(call, one.function))
      .map((one) => withMemory(one, gpuTable.nodes()));
  const quotas = (call: IdentifiedCall): JsonObject[] =>
    learned
      .quotas()
      .filter(({ jobs }) => jobs.some((job) => mayName(call, job.function)))
      .map((row) => quotaFor(row, (name) => mayName(call, name), isOperator(call)));
  const forgets = (wasThere: boolean): ReturnType<typeof jsonAnswer> => {
    if (!wasThere) throw noSuchEntity();
    return jsonAnswer({ ok: true });
  };
  const shared = { access: 'identified', tag: 'GPUs' } as const;
  const lists = { ...shared, method: 'GET' } as const;
  const deletes = { ...shared, method: 'DELETE' } as const;
  const forgotten = { 200: { description: 'It is forgotten' }, ...errorResponses(401, 403, 404, 500) } as const;
  const listOf = <Schema extends 'GpuLearnedFunction' | 'GpuQuota' | 'GpuModel'>(description: string, schema: Schema) =>
    ({ 200: { description, schema: { arrayOf: schema } }, ...errorResponses(401, 500) }) as const;
  return [
    {
      ...lists,
      path: `${apiRoot}/gpu/functions`,
      operationId: 'getGpuFunctions',
      summary: 'What was learned of functions that need a GPU',
      responses: listOf('By function and kind of GPU', 'GpuLearnedFunction'),
      handle: (call: IdentifiedCall) => Promise.resolve(jsonAnswer(functions(call))),
    },
    {
      ...deletes,
      path: `${apiRoot}/gpu/functions/{name}`,
      parameters: pathParameters({ name: '/namespace/action, percent-encoded' }),
      operationId: 'forgetGpuFunction',
      summary: 'Forget a function and all sets that it is in (operators)',
      responses: forgotten,
      handle: forOperators(context, (call) =>
        Promise.resolve(forgets(learned.forgetFunction(pathParameter(call, 'name')))),
      ),
    },
    {
      ...lists,
      path: `${apiRoot}/gpu/quotas`,
      operationId: 'getGpuQuotas',
      summary: 'The shares that were measured for functions that run together',
      responses: listOf('By set of functions and kind of GPU', 'GpuQuota'),
      handle: (call: IdentifiedCall) => Promise.resolve(jsonAnswer(quotas(call))),
    },
    {
      ...deletes,
      path: `${apiRoot}/gpu/quotas/{id}`,
      parameters: pathParameters({ id: 'Id of the set, percent-encoded' }),
      operationId: 'forgetGpuQuota',
      summary: 'Forget what was measured of a set (operators)',
      responses: forgotten,
      handle: forOperators(context, (call) => Promise.resolve(forgets(learned.forgetQuota(pathParameter(call, 'id'))))),
    },
    {
      ...lists,
      path: `${apiRoot}/gpu/models`,
      operationId: 'getGpuModels',
      summary: 'The predictors of slowdowns that are in force (operators)',
      responses: { ...listOf('By kind of GPU', 'GpuModel'), ...errorResponses(403) },
      handle: forOperators(context, () => Promise.resolve(jsonAnswer(learned.models().map((model) => ({ ...model }))))),
    },
    {
      ...deletes,
      path: `${apiRoot}/gpu/models/{gpuType}/{mode}`,
      parameters: pathParameters({ gpuType: 'Short name of the model of GPU', mode: 'How it is shared' }),
      operationId: 'forgetGpuModel',
      summary: 'Forget a predictor and the runs that it was learned from (operators)',
      responses: forgotten,
      handle: forOperators(context, (call) => {
        const mode = pathParameter(call, 'mode') as DeviceMode;
        return Promise.resolve(forgets(learned.forgetModel({ gpuType: pathParameter(call, 'gpuType'), mode })));
      }),
    },
  ];
}

/** With what its instances on such GPUs were last seen to hold, at most. */
function withMemory(one: LearnedFunction, nodes: readonly NodeStatus[]): JsonObject {
  const held = nodes.flatMap(({ devices, residents }) => {
    const alike = new Set(devices.filter(({ type }) => one.gpuType.startsWith(type)).map(({ uuid }) => uuid));
    return residents
      .filter(({ action, device }) => action === one.function && alike.has(device))
      .flatMap(({ heldMiB }) => heldMiB ?? []);
  });
  return { ...(one as unknown as JsonObject), ...(held.length > 0 && { heldMiB: Math.max(...held) }) };
}

/** Its id names all of its functions. */
function quotaFor({ id, ...row }: LearnedQuota, mayName: (name: string) => boolean, isOperator: boolean): JsonObject {
  const jobs = row.jobs.map((job) => (mayName(job.function) ? job : ofOthers));
  return { ...(isOperator && { id }), ...row, jobs } as unknown as JsonObject;
}
