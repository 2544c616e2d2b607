import Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { methodNotAllowed, noSuchRoute } from '@gpuwhisk/common/errors';
import type { Answer } from '../http/answer.js';
import type { Authentication } from '../authentication/authentication.js';
import { apiRoot } from '../http/route.js';
import type { Call, Route } from '../http/route.js';

/** What the request carries through Koa. */
export interface CallState {
  call: Omit<Call, 'params'>;
  answer?: Answer;
}

type Context = RouterContext<CallState>;
type RoutedRoute = Exclude<Route, { access: 'web' }>;

/** `/a/{b}` → `/a/:b`, as the router writes it. */
function routerPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1');
}

/** Whether a path is part of the versioned API, where who asks is settled before what is there. */
export function isApiPath(path: string): boolean {
  return path === apiRoot || path.startsWith(`${apiRoot}/`);
}

/** A router of the table; what no route answers throws ApiError (401, 404, 405). */
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

/** Refuses a request that no route took. `matched`: the routes that have its path, with another method. */
export async function refuseUnrouted(ctx: Context, authentication: Authentication): Promise<never> {
  if (isApiPath(ctx.path)) await authentication.viewer(ctx.state.call.request.headers.authorization);
  // As OpenWhisk has it: with a slash at its end, a path (but the root) is only there for the methods that it has.
  const matched = ctx.path !== '/' && ctx.path.endsWith('/') ? [] : (ctx.matched ?? []);
  const methods = new Set(matched.flatMap((layer) => layer.methods));
  methods.delete('HEAD');
  throw methods.size > 0 ? methodNotAllowed([...methods]) : noSuchRoute();
}
