// The server's limits and runtimes, its health and its metrics.
import type { Config } from '@gpuwhisk/common/config';
import type { JsonObject } from '@gpuwhisk/common/json';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { isOfNamespace } from '../authentication/authentication.js';
import { jsonAnswer, textAnswer } from '../http/answer.js';
import type { ApiContext } from './api-context.js';
import { errorResponses } from './descriptions.js';
import { apiRoot } from '../http/route.js';
import type { Route } from '../http/route.js';

const MiB = 1024 * 1024;

function limitsInfo(limits: Config['limits']): JsonObject {
  const bounds = {
    min_action_duration: limits.minTimeoutMs,
    max_action_duration: limits.maxTimeoutMs,
    min_action_memory: limits.minMemoryMiB * MiB,
    max_action_memory: limits.maxMemoryMiB * MiB,
    min_action_logs: limits.minLogsMiB * MiB,
    max_action_logs: limits.maxLogsMiB * MiB,
  };
  // The system's limits, which apply to namespaces without their own.
  const defaults = Object.fromEntries(Object.entries(bounds).map(([name, value]) => [`default_${name}`, value]));
  return {
    actions_per_minute: limits.invocationsPerMinute,
    triggers_per_minute: limits.firesPerMinute,
    concurrent_actions: limits.concurrentInvocations,
    sequence_length: limits.maxSequenceLength,
    ...defaults,
    ...bounds,
  };
}

function runtimesInfo(manifest: RuntimeManifest): JsonObject {
  const families = Object.entries(manifest.runtimes).map(([family, entries]) => [
    family,
    entries.map(({ kind, image, deprecated, default: preferred, attached, requireMain }) => ({
      kind,
      image: `${image.prefix}/${image.name}:${image.tag}`,
      deprecated,
      default: preferred,
      attached: attached !== undefined,
      requireMain,
    })),
  ]);
  return Object.fromEntries(families) as JsonObject;
}

/** The routes `/` and `/api/v1`: limits, runtimes and build of the server. */
export function infoRoutes(context: Pick<ApiContext, 'build' | 'config' | 'manifest'>): Route[] {
  return [
    {
      method: 'GET',
      path: '/',
      access: 'open',
      operationId: 'getInfo',
      tag: 'Info',
      summary: 'Limits and runtimes of this server',
      responses: { 200: { description: 'Limits and runtimes' } },
      handle: () =>
        jsonAnswer({
          description: 'OpenWhisk',
          support: {
            github: 'https://github.com/apache/openwhisk/issues',
            slack: 'http://slack.openwhisk.org',
          },
          api_paths: [apiRoot],
          limits: limitsInfo(context.config.limits),
          runtimes: runtimesInfo(context.manifest()),
        }),
    },
    {
      method: 'GET',
      path: apiRoot,
      trailingSlash: true,
      access: 'open',
      operationId: 'getApiInfo',
      tag: 'Info',
      summary: 'Version and build of this API',
      responses: { 200: { description: 'Version and build', schema: 'ApiInfo' } },
      handle: () =>
        jsonAnswer({
          description: 'OpenWhisk API',
          api_version: '1.0.0',
          api_version_path: 'v1',
          build: context.build.date,
          buildno: context.build.number,
          swagger_paths: { ui: '/docs', 'api-docs': '/api-docs' },
        }),
    },
    {
      method: 'GET',
      path: `${apiRoot}/viewer`,
      access: 'viewer',
      operationId: 'getViewer',
      tag: 'Info',
      summary: 'What the key of the caller may see',
      responses: { 200: { description: 'The caller', schema: 'Viewer' }, ...errorResponses(401, 500) },
      handle: ({ identity, isOperator }) => {
        const { name } = identity.namespace;
        return Promise.resolve(jsonAnswer({ ...(isOfNamespace(identity) && { namespace: name }), isOperator }));
      },
    },
  ];
}

/** Routes to the health and metrics of the server and its invokers. */
export function healthRoutes(context: Pick<ApiContext, 'invokersHealth' | 'metrics'>): Route[] {
  const states = (): string[] => Object.values(context.invokersHealth());
  const healthy = (): number => states().filter((state) => state === 'up').length;
  return [
    {
      method: 'GET',
      path: '/ping',
      access: 'open',
      operationId: 'ping',
      tag: 'Health',
      summary: 'Whether the server answers',
      responses: { 200: { description: 'pong' } },
      handle: () => textAnswer('pong'),
    },
    {
      method: 'GET',
      path: '/invokers',
      trailingSlash: true,
      access: 'outside',
      operationId: 'getInvokers',
      tag: 'Health',
      summary: 'The state of each invoker',
      responses: { 200: { description: 'States by name' } },
      handle: () => jsonAnswer(context.invokersHealth()),
    },
    {
      method: 'GET',
      path: '/invokers/healthy/count',
      access: 'outside',
      operationId: 'countHealthyInvokers',
      tag: 'Health',
      summary: 'The number of invokers that are up',
      responses: { 200: { description: 'A number' } },
      handle: () => jsonAnswer(healthy()),
    },
    {
      method: 'GET',
      path: '/invokers/ready',
      access: 'outside',
      operationId: 'getReadiness',
      tag: 'Health',
      summary: 'Whether all invokers are up',
      responses: { 200: { description: 'All are up' }, 500: { description: 'Some are not, or there are none' } },
      handle: () => {
        const all = states().length;
        const up = healthy();
        return all > 0 && up === all
          ? jsonAnswer({ healthy: `${up}/${all}` })
          : jsonAnswer({ unhealthy: `${all - up}/${all}` }, 500);
      },
    },
    {
      method: 'GET',
      path: '/metrics',
      access: 'outside',
      operationId: 'getMetrics',
      tag: 'Health',
      summary: 'Metrics in the Prometheus text format',
      responses: { 200: { description: 'Metrics' } },
      handle: async () => ({
        status: 200,
        body: await context.metrics.render(),
        contentType: context.metrics.contentType,
      }),
    },
  ];
}
