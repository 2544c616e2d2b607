import { timingSafeEqual } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { pipeline } from 'node:stream';
import { ConfigError } from '@gpuwhisk/common/config';
import { gpuNoticeTable } from '@gpuwhisk/common/gpu-nodes';
import type { Metrics } from '@gpuwhisk/common/metrics';
import { OfferedRuntimes } from '@gpuwhisk/common/state/cluster-runtimes';
import type { ClusterState, StateSubscription } from '@gpuwhisk/common/state/cluster-state';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import type { HttpHandler } from '@gpuwhisk/common/system/network';
import { HealthPings } from '@gpuwhisk/invoker/health-pings';
import { fromSandbox } from '@gpuwhisk/controller/http/route';
import { openInvokerNode } from '../node/invoker-node.js';
import { openCatalog } from '../node/node-containers.js';
import { Opened } from '../process/opened.js';
import { loadPolicyModules } from '../process/policy-modules.js';
import type { ClusterConfig } from './flags.js';
import { openCluster } from './open-cluster.js';
import type { ClusterProcess } from './open-cluster.js';

/** Starts an invoker of a cluster. Throws ConfigError, IsolationError, and the errors of engines. */
export function startInvoker(config: ClusterConfig): Promise<ClusterProcess> {
  return Opened.during((opened) => start(config, opened));
}

async function start(config: ClusterConfig, opened: Opened): Promise<ClusterProcess> {
  const { apiHost, host, port } = config;
  if (apiHost === undefined) throw new ConfigError('An invoker needs the address of the API: --set apiHost=URL');
  await loadPolicyModules(config.gpu);
  const engines = await openCluster(config, 'invoker', opened);
  const { instance, bus, clock, logger, metrics } = engines;
  const catalog = await openCatalog(config, logger);
  opened.onClose(() => catalog.close());
  // Functions may have no route to the HTTPS proxy, or not trust its certificate: they get the address of the
  // forwarder.
  const ofNode = { ...config };
  delete ofNode.apiHost;
  const node = await openInvokerNode({
    ...engines,
    config: ofNode,
    catalog,
    inCluster: true,
    nodes: engines.nodes,
    serveApi: forwardApi(apiHost),
  });
  opened.onClose(() => node.close());
  const pings = new HealthPings(bus, clock, logger, {
    instance,
    userMemory: `${node.memoryMiB} MB`,
    instanceType: 'invoker',
    tags: [],
    dedicatedNamespaces: [],
    uniqueName: config.name,
  });
  const handler = invokerHandler({ metrics, pings, auth: config.invokerAuth });
  const server = await systemNetwork.listen(handler, { host, port });
  opened.onClose(() => server.close(0));
  await node.start(apiHost);
  const offered = new OfferedRuntimes({ ...engines, invoker: `invoker${instance}`, manifest: catalog.manifest });
  await offered.open();
  opened.onClose(() => offered.close());
  await pings.open();
  opened.onClose(() => pings.close());
  const notices = await followNotices(engines.state, `invoker${instance}`, pings);
  opened.onClose(() => notices.close());
  const notes = [...(node.gpus === undefined ? [] : [node.gpus]), ...node.notes.map((note) => `  note: ${note}`)];
  return {
    line: [`invoker${instance} is ready at http://${host}:${server.port}`, ...notes].join('\n'),
    async close(drainMs) {
      await pings.leave();
      await node.drain(drainMs);
      await opened.close();
    },
  };
}

/** Has an invoker take no activations of any kind while its node has a notice. */
async function followNotices(
  state: ClusterState,
  invoker: string,
  pings: Pick<HealthPings, 'enable' | 'enabled'>,
): Promise<StateSubscription> {
  // Before the notice; an operator may have disabled the invoker.
  let wasEnabled: boolean | undefined;
  const follow = (hasNotice: boolean): void => {
    if (hasNotice === (wasEnabled !== undefined)) return;
    const before = wasEnabled ?? true;
    wasEnabled = hasNotice ? pings.enabled : undefined;
    pings.enable(hasNotice ? false : before);
  };
  const subscription = await state.watch(gpuNoticeTable, (key, row) => {
    if (key === invoker) follow(row !== undefined);
  });
  follow((await state.rows(gpuNoticeTable)).has(invoker));
  return subscription;
}

/** Dependencies of invokerHandler. */
interface InvokerServerOptions {
  metrics: Metrics;
  pings: Pick<HealthPings, 'enable' | 'enabled'>;
  /** `user:password` that /enable and /disable require; absent: both routes are refused. */
  auth: string | undefined;
}

/** Answers an invoker's routes: /ping, /metrics, and OpenWhisk's /isEnabled, /enable and /disable. */
function invokerHandler({ metrics, pings, auth }: InvokerServerOptions): HttpHandler {
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

/** Time limit for an answer of the API, ms: longer than a blocking invocation. */
const forwardTimeoutMs = 75_000;

/** Forwards requests of functions in sandboxes to the platform's API at `apiUrl`, with a header that marks them. */
export function forwardApi(apiUrl: string): HttpHandler {
  const { protocol, hostname, port, host } = new URL(apiUrl);
  const send = protocol === 'https:' ? httpsRequest : httpRequest;
  return (request, response) => {
    const { method, url: path = '/', headers } = request;
    // All requests go to the API: a path that is an absolute URL is refused and never used as an address.
    if (!path.startsWith('/')) {
      response.writeHead(400).end();
      return;
    }
    // A proxy on the way drops the headers that `connection` names, so a function could make it drop our header.
    const passed = { ...headers, host, [fromSandbox]: 'true' };
    delete passed.connection;
    const onward = send({ hostname, port, path, method, headers: passed });
    onward.setTimeout(forwardTimeoutMs, () => onward.destroy(new Error('no answer')));
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, response, () => undefined);
    });
    onward.on('error', () => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end();
    });
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  };
}
