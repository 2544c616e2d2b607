import { formatByteSize, maxCodeFor } from '@gpuwhisk/common/entities/limits';
import type { UserLimits } from '@gpuwhisk/common/entities/identity';
import { jsonAnswer } from '../http/answer.js';
import type { ApiContext } from './api-context.js';
import { boundsOf } from '../entitlement/limits.js';
import { errorResponses, namespaceParameter } from './descriptions.js';
import { apiRoot, checkOwner, namespaceOf } from '../http/route.js';
import type { IdentifiedCall, Route } from '../http/route.js';

type Context = Pick<ApiContext, 'config' | 'store'>;

function resolvedLimits(context: Context, call: IdentifiedCall): UserLimits {
  const own = call.identity.limits;
  const system = context.config.limits;
  const bounds = boundsOf(context, call.identity);
  const gpus = {
    concurrentGpuInvocations: own.concurrentGpuInvocations ?? system.concurrentGpuInvocations,
    concurrentGpus: own.concurrentGpus ?? system.concurrentGpus,
    concurrentGpuMemory: own.concurrentGpuMemory ?? system.concurrentGpuMemoryMiB,
    gpuSecondsPerMinute: own.gpuSecondsPerMinute ?? system.gpuSecondsPerMinute,
    maxGpuShare: own.maxGpuShare ?? system.maxGpuShare,
    warmGpuContainers: own.warmGpuContainers ?? system.warmGpuContainers,
  };
  return {
    ...own,
    ...Object.fromEntries(Object.entries(gpus).filter(([, limit]) => limit !== undefined)),
    invocationsPerMinute: own.invocationsPerMinute ?? system.invocationsPerMinute,
    concurrentInvocations: own.concurrentInvocations ?? system.concurrentInvocations,
    firesPerMinute: own.firesPerMinute ?? system.firesPerMinute,
    storedMiB: own.storedMiB ?? system.storedMiB,
    minActionMemory: bounds.memoryMiB.min,
    maxActionMemory: bounds.memoryMiB.max,
    minActionLogs: bounds.logsMiB.min,
    maxActionLogs: bounds.logsMiB.max,
    minActionTimeout: bounds.timeoutMs.min,
    maxActionTimeout: bounds.timeoutMs.max,
    minActionConcurrency: bounds.concurrency.min,
    maxActionConcurrency: bounds.concurrency.max,
    maxParameterSize: formatByteSize(bounds.maxParameters.bytes),
    maxActionInstances: bounds.maxInstances,
  };
}

/** Routes to the caller's namespaces and their limits. */
export function namespaceRoutes(context: Context): Route[] {
  return [
    {
      method: 'GET',
      path: `${apiRoot}/namespaces`,
      trailingSlash: true,
      access: 'identified',
      operationId: 'getAllNamespaces',
      tag: 'Namespaces',
      summary: "The caller's namespaces",
      responses: { 200: { description: 'Names', schema: 'strings' }, ...errorResponses(401, 500) },
      handle: (call) => jsonAnswer([call.identity.namespace.name]),
    },
    {
      method: 'GET',
      path: `${apiRoot}/namespaces/{namespace}/limits`,
      trailingSlash: true,
      access: 'identified',
      operationId: 'getLimits',
      tag: 'Namespaces',
      summary: 'The limits of a namespace, and the bytes that it has stored',
      parameters: [namespaceParameter],
      responses: { 200: { description: 'Limits', schema: 'NamespaceLimits' }, ...errorResponses(400, 401, 403, 500) },
      handle: (call) => {
        checkOwner(call, namespaceOf(call));
        const storedBytes = context.store.storedBytes(call.identity.namespace.name);
        const { bytes: maxActionCodeBytes } = maxCodeFor(context.config.limits);
        const limits = { ...resolvedLimits(context, call), maxActionCodeBytes };
        return jsonAnswer({ ...limits, ...(storedBytes !== undefined && { storedBytes }) });
      },
    },
  ];
}
