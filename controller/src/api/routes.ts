// All routes, and the router over them.
import Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { methodNotAllowed, noSuchRoute } from '@gpuwhisk/common/errors';
import { actionRoutes } from './actions.js';
import { activityRoutes } from './activity.js';
import { actionVersionRoutes } from './action-versions.js';
import { adminDataRoutes, refusedRecordRoutes } from './admin-data.js';
import { adminRoutes } from './admin.js';
import { activationRoutes } from './activations.js';
import type { ApiContext } from './api-context.js';
import { docsRoutes, schemaRoutes, sdkRoutes } from './docs.js';
import { gpuDecisionRoutes } from './gpu-decisions.js';
import { gpuPolicyRoutes } from './gpu-policy.js';
import { gpuPerformanceRoutes } from './gpu-performance.js';
import { gpuRoutes } from './gpu.js';
import { gpuCostRoutes } from './gpu-cost.js';
import { gpuNodeRoutes } from './gpu-nodes.js';
import { gpuInstanceRoutes } from './gpu-instances.js';
import { gpuJobRoutes } from './gpu-jobs.js';
import { gpuModelRoutes } from './gpu-model.js';
import { gpuProfileRoutes } from './gpu-profile.js';
import { healthRoutes, infoRoutes } from './info.js';
import { liveRoutes } from './live.js';
import { namespaceRoutes } from './namespaces.js';
import { packageRoutes } from './packages.js';
import type { IdentifiedCall, Route, RouteParameter, Call } from '../http/route.js';
import { ruleRoutes } from './rules.js';
import { triggerRoutes } from './triggers.js';
import { actionNameParameter, errorResponses, namespaceParameter, packageNameParameter } from './descriptions.js';
import { apiRoot } from '../http/route.js';
import type { Answer } from '../http/answer.js';
import type { Authentication } from '../authentication/authentication.js';

/** All routes of the controller. */
export function createRoutes(context: ApiContext): Route[] {
  const routes: Route[] = [
    ...infoRoutes(context),
    ...healthRoutes(context),
    ...docsRoutes(() => routes),
    ...schemaRoutes(context),
    ...sdkRoutes(),
    ...namespaceRoutes(context),
    ...adminRoutes(context),
    ...adminDataRoutes(context),
    ...refusedRecordRoutes(context),
    ...gpuRoutes(context),
    ...gpuInstanceRoutes(context),
    ...gpuModelRoutes(context),
    ...gpuJobRoutes(context),
    ...gpuProfileRoutes(context),
    ...gpuNodeRoutes(context),
    ...gpuCostRoutes(context),
    ...gpuPolicyRoutes(context),
    ...gpuDecisionRoutes(context),
    ...gpuPerformanceRoutes(context),
    ...activityRoutes(context),
    ...actionRoutes(context),
    ...actionVersionRoutes(context),
    ...packageRoutes(context),
    ...activationRoutes(context),
    ...triggerRoutes(context),
    ...ruleRoutes(context),
    ...liveRoutes(context),
    ...webRoutes(),
  ].map((route) => (route.stores === true ? bounded(route, context) : route));
  return routes;
}

/** A route that stores data, for namespaces that may store more. */
function bounded(route: Route, { throttles }: Pick<ApiContext, 'throttles'>): Route {
  if (route.access !== 'identified') throw new Error(`${route.operationId} stores data of no namespace`);
  const { handle } = route;
  return {
    ...route,
    responses: { ...route.responses, ...errorResponses(429, 507) },
    handle(call: IdentifiedCall) {
      throttles.checkStored(call.identity);
      return handle(call);
    },
  };
}

const extensionParameter: RouteParameter = {
  name: 'extension',
  in: 'path',
  type: 'string',
  description: 'http, json, html, svg or text: how the result becomes an answer; http where absent',
};

const operations = [
  ['GET', 'getWebAction'],
  ['PUT', 'putWebAction'],
  ['DELETE', 'deleteWebAction'],
  ['POST', 'postWebAction'],
] as const;

/** Routes of web actions for the API documents; web-handler.ts answers their requests. */
function webRoutes(): Route[] {
  return operations.map(([method, operationId]) => ({
    method,
    path: `${apiRoot}/web/{namespace}/{packageName}/{actionName}.{extension}`,
    access: 'web',
    operationId,
    tag: 'Actions',
    summary: 'Call a web action',
    parameters: [
      namespaceParameter,
      { ...packageNameParameter, description: "Name of the package; 'default' where there is none" },
      actionNameParameter,
      extensionParameter,
    ],
    responses: {
      200: { description: 'Answer of the action' },
      default: { description: 'Answer of the action with another status, or the reason why the action was not called' },
    },
    ...(method === 'POST' && { body: { schema: 'ActionPayload', required: false } }),
  }));
}

/** The state of a request in Koa. */
export interface CallState {
  call: Omit<Call, 'params'>;
  answer?: Answer;
}

type Context = RouterContext<CallState>;
type RoutedRoute = Exclude<Route, { access: 'web' }>;

/** `/a/{b}` → `/a/:b`, the router's syntax. */
function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** Whether a path is part of the versioned API, which authenticates callers before it looks up the path. */
export function isApiPath(path: string): boolean {
  return path === apiRoot || path.startsWith(`${apiRoot}/`);
}

/** A router over the routes. Requests without a route throw ApiError (401, 404, 405). */
export function createRouter(routes: readonly Route[], authentication: Authentication): Router<CallState> {
  const router = new Router<CallState>({ strict: true, sensitive: true });
  for (const route of routes) {
    if (route.access === 'web') continue;
    const path = routerPath(route.path);
    const paths = route.trailingSlash === true ? [path, `${path}/`] : [path];
    for (const one of paths) {
      router.register(one, [route.method], async (ctx: Context) => {
        ctx.state.answer = await answer(route, ctx, authentication);
      });
    }
  }
  return router;
}

async function answer(route: RoutedRoute, ctx: Context, authentication: Authentication): Promise<Answer> {
  const call = { ...ctx.state.call, params: ctx.params };
  const { authorization } = call.request.headers;
  switch (route.access) {
    case 'open':
    case 'outside':
      return route.handle(call);
    case 'identified':
      return route.handle({ ...call, identity: await authentication.namespace(authorization) });
    case 'viewer':
      return route.handle({ ...call, ...(await authentication.viewer(authorization)) });
    case 'operator':
      return route.handle({ ...call, identity: await authentication.operator(authorization, call) });
  }
}

/** Refuses a request without a route. `matched` are the routes with the same path and another method. */
export async function refuseUnrouted(ctx: Context, authentication: Authentication): Promise<never> {
  if (isApiPath(ctx.path)) await authentication.viewer(ctx.state.call.request.headers.authorization);
  // As in OpenWhisk, a path with a final slash (except the root) exists for its own methods only.
  const matched = ctx.path !== '/' && ctx.path.endsWith('/') ? [] : (ctx.matched ?? []);
  const methods = new Set(matched.flatMap((layer) => layer.methods));
  methods.delete('HEAD');
  throw methods.size > 0 ? methodNotAllowed([...methods]) : noSuchRoute();
}
