import { timingSafeEqual } from 'node:crypto';
import type { Metrics } from '@gpuwhisk/common/metrics';
import type { HttpHandler } from '@gpuwhisk/common/system/network';
import type { HealthPings } from '@gpuwhisk/invoker/health-pings';

export interface InvokerServerOptions {
  metrics: Metrics;
  pings: Pick<HealthPings, 'enable' | 'enabled'>;
  /** `user:password` of who may change it; absent: nobody. */
  auth: string | undefined;
}

/** Answers what an invoker is asked: /ping, /metrics, and OpenWhisk's /isEnabled, /enable and /disable. */
export function invokerHandler({ metrics, pings, auth }: InvokerServerOptions): HttpHandler {
  const isAllowed = (authorization = ''): boolean => {
    const given = Buffer.from(authorization);
    const expected = Buffer.from(`Basic ${Buffer.from(auth ?? '').toString('base64')}`);
    return auth !== undefined && given.length === expected.length && timingSafeEqual(given, expected);
  };
  return (request, response) => {
    const text = (status: number, body: string | Buffer, type = 'text/plain; charset=UTF-8'): void => {
      response.writeHead(status, { 'content-type': type }).end(body);
    };
    request.resume();
    const { method, url, headers } = request;
    if (method === 'GET' && url === '/ping') return text(200, 'pong');
    if (method === 'GET' && url === '/metrics') {
      metrics.render().then(
        (body) => text(200, body, metrics.contentType),
        () => text(500, ''),
      );
      return;
    }
    const known = { 'GET /isEnabled': undefined, 'POST /enable': true, 'POST /disable': false };
    const call = `${method} ${url}`;
    if (!(call in known)) return text(404, '');
    if (!isAllowed(headers.authorization)) return text(401, '');
    const wanted = known[call as keyof typeof known];
    if (wanted === undefined) return text(200, JSON.stringify({ enabled: pings.enabled }), 'application/json');
    pings.enable(wanted);
    return text(200, wanted ? 'invoker enabled' : 'invoker disabled');
  };
}
