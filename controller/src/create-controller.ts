import type { IncomingMessage, ServerResponse } from 'node:http';
import Koa from 'koa';
import type Router from '@koa/router';
import type { RouterContext } from '@koa/router';
import { recordHorizon } from '@gpuwhisk/common/activations/record-horizon';
import { createArgumentUnlock, createParameterLock } from '@gpuwhisk/common/entities/parameter-encryption';
import { ApiError, isApiError, notAcceptable, uriTooLong } from '@gpuwhisk/common/errors';
import type { HttpHandler } from '@gpuwhisk/common/system/network';
import { LargeCodes } from './http/action-answer.js';
import { ActionCache, ActionWriter } from './actions/action-store.js';
import { ActionResolver } from './actions/action-resolver.js';
import { identityChanges } from './api/admin.js';
import { createRouter, isApiPath, refuseUnrouted, createRoutes } from './api/routes.js';
import type { CallState } from './api/routes.js';
import { RequestTraces, gatewayRoute } from './http/request-traces.js';
import type { ApiContext, ControllerDependencies } from './api/api-context.js';
import { fromSandbox, isForSandboxes } from './http/route.js';
import type { Route } from './http/route.js';
import { Throttles } from './entitlement/throttles.js';
import { accepts, acceptsJson, textAnswer, writeAnswer, writeError } from './http/answer.js';
import type { Cors } from './http/answer.js';
import { createMovedHandler } from './http/moved-sites.js';
import { createSiteHandler, refuse } from './http/static-files.js';
import { ClientGoneError, maxUriLength, logAnswered, transactionIdOf } from './http/request.js';
import { authenticateNamespaces, authenticateOperators, Identities } from './authentication/authentication.js';
import type { Authentication } from './authentication/authentication.js';
import { ActivityWindow } from './cluster/activity-window.js';
import { ComposingInvoker } from './compose/composing-invoker.js';
import { createInvokeRoute } from './api/invoke-route.js';
import { PackageCache, PackageWriter } from './packages/package-store.js';
import { RuleWriter } from './triggers/rule-writer.js';
import { TriggerWriter } from './triggers/trigger-writer.js';
import { DeviceHistory } from './gpu/state/device-history.js';
import { TrainingJobs } from './gpu/training/training-jobs.js';
import { LiveStreams } from './live/live-streams.js';
import { LogStreams } from './live/log-streams.js';
import { createGateway } from './gateway/create-gateway.js';
import { ApiRegistry } from './gateway/api-registry.js';
import { createManagementHandler } from './gateway/management-handler.js';
import { vanityUrl } from './web/web-request.js';
import { createWebCaller, createWebHandler } from './web/web-handler.js';

export type { ControllerDependencies } from './api/api-context.js';

/** The REST API. */
export interface Controller {
  /**
   * Answers one HTTP request; never throws. A request that an invoker forwards for a function is handled as by
   * `handleSandboxes`.
   */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Answers one HTTP request of a function; never throws. Operators' routes are not served, whatever the key. */
  handleSandboxes(request: IncomingMessage, response: ServerResponse): void;
  /** Answers one HTTP request to the API gateway, which has its own port; never throws. */
  handleGateway(request: IncomingMessage, response: ServerResponse): void;
  /**
   * Answers one HTTP request to the listener of the console, an origin without pages of tenants: sites and the versioned
   * API without web actions, for pages of this origin only; never throws. Functions are served nothing.
   */
  handleConsole(request: IncomingMessage, response: ServerResponse): void;
  /** The callers' identities; `cached` does not wait. */
  readonly identities: Identities;
  /** The actions without their code; `cached` does not wait. */
  readonly actions: ActionCache;
  /** Finds actions by name. */
  readonly resolver: ActionResolver;
  /** Sequences and compositions. Open before the first request; close after the last one. */
  readonly composing: Pick<ComposingInvoker, 'open' | 'close'>;
  /** Training jobs. Open once activations can be sent; close before that ends. */
  readonly trainingJobs: Pick<TrainingJobs, 'open' | 'close'>;
  /** Streams of what the API answers. Close before the server, which waits for them. */
  readonly liveStreams: Pick<LiveStreams, 'close'>;
  /** All routes, also for the API documents. */
  readonly routes: readonly Route[];
}

/** Time after which a controller that could not listen to its cluster tries again, ms. */
const listenAgainMs = 5000;

/** Creates the REST API; it owns no resources. */
export function createController(dependencies: ControllerDependencies): Controller {
  const { store, clock, random, logger, config, state } = dependencies;
  const { vanityDomain } = config;
  const identities = new Identities(store, clock);
  const changes = dependencies.changes;
  const changedHere = (id: string): void => changes?.announce(id);
  const actions = new ActionCache(store, clock, changedHere);
  const lock = createParameterLock(config.parameterStorage, random);
  const packages = new PackageCache(store, clock, changedHere);
  changes?.onElsewhere((id) => {
    actions.changedElsewhere(id);
    packages.changedElsewhere(id);
  });
  const actionWriter = new ActionWriter(store, actions, { random, clock }, lock);
  const actionResolver = new ActionResolver(actions, packages);
  const composing = new ComposingInvoker({
    ...dependencies,
    primitive: dependencies.invoker,
    recordLevels: config,
    maxUnstoredBytes: config.maxUnstoredBytes,
    resolver: actionResolver,
    maxLength: config.limits.maxSequenceLength,
    maxAtOnce: config.maxCompositions,
  });
  const trainingJobs = new TrainingJobs({
    ...dependencies,
    ...{ identities, resolver: actionResolver, lock, unlock: createArgumentUnlock(config.parameterStorage) },
  });
  const triggerWriter = new TriggerWriter(store);
  const operators = authenticateOperators(identities, config, logger);
  const activity = new ActivityWindow(state, clock);
  const deviceHistory = new DeviceHistory(dependencies.gpuTable, clock);
  const liveStreams = new LiveStreams({ routes: () => routes, authentication: operators, clock, logger });
  const requestTraces = dependencies.tracer && new RequestTraces(dependencies.tracer);
  const { instance } = dependencies;
  const ttlMs = config.recordTtlHours * 3_600_000;
  const logStreams = new LogStreams({ state, authentication: operators, clock, logger, instance });
  const context: ApiContext = {
    ...dependencies,
    ...(requestTraces && { requestTraces }),
    liveStreams,
    activity,
    deviceHistory,
    logStreams,
    expiredBefore: ttlMs > 0 ? recordHorizon(clock, ttlMs) : () => undefined,
    actions,
    actionResolver,
    invoker: composing,
    primitive: dependencies.invoker,
    actionWriter,
    largeCodes: new LargeCodes(clock, logger),
    packages,
    packageWriter: new PackageWriter(store, packages, actionWriter, lock, clock),
    identities,
    throttles: new Throttles({ ...dependencies, limits: config.limits }),
    triggerWriter,
    ruleWriter: new RuleWriter(store, triggerWriter),
    trainingJobs,
  };
  // An operator at another controller may change identities.
  state
    .subscribe(identityChanges, () => identities.forget())
    .catch((error: unknown) => logger.error({ err: error }, 'changes of identities will take effect late'));
  const listen = (): void => {
    activity.open().catch((error: unknown) => {
      logger.error({ err: error }, 'what the cluster runs is not counted');
      clock.setBackgroundTimer(listenAgainMs, listen);
    });
  };
  listen();
  const routes = createRoutes(context);
  const serve = (served: readonly Route[], authentication: Authentication, own: ListenerKind = 'api') =>
    createApp(dependencies, createRouter(served, authentication), authentication, own);
  const outside = serve(routes, operators);
  const sandboxes = serve(routes.filter(isForSandboxes), authenticateNamespaces(identities));
  // The console asks `/` for the kinds.
  const forConsole = serve(
    routes.filter(({ path }) => isApiPath(path) || path === '/'),
    operators,
    'console',
  );
  const answerWarmInvocation = createInvokeRoute(context);
  const callWebAction = createWebCaller(context);
  const answerWebAction = createWebHandler(context, callWebAction);
  const issuers = dependencies.config.gatewayIssuers;
  const registry = new ApiRegistry({ store, clock, random, logger, issuers });
  const gatewayUrl = dependencies.gatewayUrl ?? (() => undefined);
  const answerManagement = createManagementHandler(context, { registry, issuers, gatewayUrl });
  const answer = (request: IncomingMessage, response: ServerResponse, app: HttpHandler): void => {
    if (vanityDomain !== undefined) {
      request.url = vanityUrl(request.headers.host, request.url ?? '/', vanityDomain) ?? request.url;
    }
    requestTraces?.begin(request, response);
    if (
      !answerWarmInvocation(request, response) &&
      !answerManagement(request, response) &&
      !answerWebAction(request, response)
    )
      app(request, response);
  };
  const answerGateway = createGateway({
    registry,
    callWebAction,
    clock,
    random,
    logger,
    countInWindow: (key, windowMs) => state.windowCounters(`gateway ${windowMs}`, windowMs).add(key),
  });
  const sites = dependencies.sites ?? [];
  const siteHandlers = sites.map((site) => createSiteHandler(site, logger));
  const answerMovedSite = createMovedHandler(sites, dependencies.consoleAddress ?? (() => undefined));
  return {
    handle(request, response) {
      const isOutside = request.headers[fromSandbox] === undefined;
      if (isOutside && answerMovedSite(request, response)) return;
      answer(request, response, isOutside ? outside : sandboxes);
    },
    handleSandboxes: (request, response) => answer(request, response, sandboxes),
    handleGateway(request, response) {
      requestTraces?.begin(request, response, gatewayRoute);
      answerGateway(request, response);
    },
    handleConsole(request, response) {
      if (request.headers[fromSandbox] !== undefined) return refuse(response, {}, 404, 'No function is served here.');
      if (siteHandlers.some((answerSite) => answerSite(request, response))) return;
      requestTraces?.begin(request, response);
      forConsole(request, response);
    },
    identities,
    actions,
    resolver: actionResolver,
    composing,
    trainingJobs,
    liveStreams: {
      close() {
        liveStreams.close();
        logStreams.close();
      },
    },
    routes,
  };
}

/** The listener of the API, or that of the console. */
type ListenerKind = 'api' | 'console';

/**
 * Answers the requests that no faster handler has answered. At the console's listener no page of another origin may read
 * an answer, and no browser asks for a key: it would keep the key, and send it with the requests of all pages.
 */
function createApp(
  { clock, random, logger }: ControllerDependencies,
  router: Router<CallState>,
  authentication: Authentication,
  listener: ListenerKind,
): HttpHandler {
  const dispatch = router.routes();
  const app = new Koa<CallState>();
  app.use(async (ctx) => {
    const { req: request, res: response } = ctx;
    ctx.respond = false;
    const startedMs = clock.monotonicMs();
    const transactionId = transactionIdOf(request, random);
    let cors: Cors = listener === 'console' ? 'none' : 'server';
    try {
      const isApi = isApiPath(pathOf(ctx));
      if (isApi && listener === 'api') cors = 'api';
      checkRequest(request, isApi);
      if (request.method === 'OPTIONS') {
        writeAnswer(response, transactionId, textAnswer('OK'), cors);
      } else {
        ctx.state.call = { request, transactionId, query: new URLSearchParams(ctx.querystring) };
        const routed = ctx as unknown as RouterContext<CallState>;
        await dispatch(routed, () => refuseUnrouted(routed, authentication));
        if (ctx.state.answer === undefined) throw new Error(`no answer to ${request.method} ${ctx.path}`);
        writeAnswer(response, transactionId, ctx.state.answer, cors);
      }
    } catch (error) {
      const told = listener === 'console' ? withoutChallenge(error) : error;
      if (!(error instanceof ClientGoneError)) writeError(response, told, transactionId, logger, cors);
    }
    logAnswered(logger, response, transactionId, clock.monotonicMs() - startedMs);
  });
  // Koa reports connections that broke during an answer.
  app.on('error', (error: unknown) => logger.debug({ err: error }, 'a connection failed'));
  const handle = app.callback();
  return (request, response) => void handle(request, response);
}

/** A refusal without the header that makes browsers ask for a key; other errors as they are. */
function withoutChallenge(error: unknown): unknown {
  return isApiError(error) && error.status === 401 ? new ApiError(401, error.message, { rejection: true }) : error;
}

/** The path of a request. Throws ApiError (400) for a malformed URL as target. */
function pathOf(ctx: Koa.Context): string {
  try {
    return ctx.path;
  } catch {
    throw new ApiError(400, 'Illegal request-target.');
  }
}

/** Refuses requests before routing. Throws ApiError (406, 414). */
function checkRequest(request: IncomingMessage, answersJson: boolean): void {
  if ((request.url?.length ?? 0) > maxUriLength) throw uriTooLong(maxUriLength);
  const { accept } = request.headers;
  if (answersJson && !acceptsJson(accept) && !accepts(accept, 'text/event-stream'))
    throw notAcceptable('application/json');
}
