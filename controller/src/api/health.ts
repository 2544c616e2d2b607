import { jsonAnswer, textAnswer } from '../http/answer.js';
import type { ApiContext } from './api-context.js';
import type { Route } from '../http/route.js';

/** How the server and its invokers are. */
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
