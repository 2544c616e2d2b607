import { ConfigError } from '@gpuwhisk/common/config';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import { HealthPings } from '@gpuwhisk/invoker/health-pings';
import { openInvokerNode } from '../invoker-node.js';
import { openCatalog } from '../node-containers.js';
import { Opened } from '../opened.js';

import type { ClusterProcess } from './cluster-process.js';
import type { ClusterConfig } from './flags.js';
import { forwardApi } from './forward-api.js';
import { invokerHandler } from './invoker-server.js';
import { openCluster } from './open-cluster.js';

/** Starts an invoker of a cluster. Throws ConfigError, IsolationError, and the errors of engines. */
export function startInvoker(config: ClusterConfig): Promise<ClusterProcess> {
  return Opened.during((opened) => start(config, opened));
}

async function start(config: ClusterConfig, opened: Opened): Promise<ClusterProcess> {
  const { apiHost, host, port } = config;
  if (apiHost === undefined) throw new ConfigError('An invoker needs the address of the API: --set apiHost=URL');
  const engines = await openCluster(config, 'invoker', opened);
  const { instance, bus, clock, logger, metrics } = engines;
  const catalog = await openCatalog(config, logger);
  opened.onClose(() => catalog.close());
  // Functions may not reach the proxy itself, or not trust its certificate: they are told the address that passes requests on.
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
    ...{ instance, userMemory: `${node.memoryMiB} MB`, instanceType: 'invoker', tags: [], dedicatedNamespaces: [] },
    uniqueName: config.name,
  });
  const handler = invokerHandler({ metrics, pings, auth: config.invokerAuth });
  const server = await systemNetwork.listen(handler, { host, port });
  opened.onClose(() => server.close(0));
  await node.start(apiHost);
  await pings.open();
  opened.onClose(() => pings.close());
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
