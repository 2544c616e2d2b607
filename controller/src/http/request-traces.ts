import type { IncomingMessage, ServerResponse } from 'node:http';
import { readTraceContext } from '@gpuwhisk/common/tracing';
import type { TraceContext, Tracer } from '@gpuwhisk/common/tracing';
import { apiRoot } from './route.js';

/** Paths below this one are those of entities; the first segment is the namespace, the second the collection. */
const entities = `${apiRoot}/namespaces/`;
const invoked = new Map([
  ['actions', `${entities}{namespace}/actions/{actionName}`],
  ['triggers', `${entities}{namespace}/triggers/{triggerName}`],
]);
const webPrefix = `${apiRoot}/web/`;
const webRoute = `${webPrefix}{namespace}/{packageName}/{actionName}`;
/** Route of the API gateway's requests. */
export const gatewayRoute = '/api/{tenant}/{path}';

/** Spans of the requests that invoke actions and fire triggers. Other requests have none. */
export class RequestTraces {
  private readonly contexts = new WeakMap<IncomingMessage, TraceContext>();

  constructor(private readonly tracer: Tracer) {}

  /** Begins the span of a request that invokes something; it ends with the answer. `route`: absent, as the path says. */
  begin(request: IncomingMessage, response: ServerResponse, route = invokedBy(request)): void {
    if (route === undefined) return;
    const { method = '', url = '' } = request;
    const span = this.tracer.start(`${method} ${route}`, {
      kind: 'server',
      parent: readTraceContext(request.headers),
      attributes: { 'http.request.method': method, 'http.route': route, 'url.path': url.split('?', 1)[0] ?? '' },
    });
    this.contexts.set(request, span.context);
    response.once('close', () => {
      const { statusCode, writableFinished } = response;
      span.set({ 'http.response.status_code': statusCode });
      if (!writableFinished) span.end('the client left');
      else span.end(statusCode >= 500 ? `status ${statusCode}` : undefined);
    });
  }

  /** The context of a request's span; undefined if it has none. */
  of(request: IncomingMessage): TraceContext | undefined {
    return this.contexts.get(request);
  }
}

/** The route of a request that invokes an action or fires a trigger; undefined for others. */
function invokedBy({ method, url = '' }: IncomingMessage): string | undefined {
  if (url.startsWith(webPrefix)) return webRoute;
  if (method !== 'POST' || !url.startsWith(entities)) return undefined;
  const [, collection = ''] = url.slice(entities.length).split('/', 2);
  return invoked.get(collection);
}
