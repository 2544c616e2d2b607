import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseManifest, withDefaultThere } from '@gpuwhisk/common/runtimes';
import type { RuntimeManifest } from '@gpuwhisk/common/runtimes';
import { ClusterRuntimes } from '@gpuwhisk/common/state/cluster-runtimes';
import { Membership } from '@gpuwhisk/common/state/membership';
import { openHealthTest, healthTopic, InvokerSupervision } from '@gpuwhisk/controller/balance/invoker-supervision';
import { ShardingBalancer } from '@gpuwhisk/controller/balance/sharding-balancer';
import { EntityChanges } from '@gpuwhisk/controller/cluster/entity-changes';
import { openControllerNode } from '../node/controller-node.js';
import { Opened } from '../process/opened.js';
import { loadPolicyModules } from '../process/policy-modules.js';
import type { ClusterConfig } from './flags.js';
import { localMachines } from './local-machines.js';
import { openCluster } from './open-cluster.js';
import type { ClusterProcess } from './open-cluster.js';

const requestGraceMs = 2000;
/** Kind of the test action: each invoker is tested with its own Node.js, without fetching another one. */
const healthKind = 'nodejs:default';
const manifestFile = fileURLToPath(new URL('../../../runtimes/runtimes.json', import.meta.url));

/** Starts a controller of a cluster. */
export function startController(config: ClusterConfig): Promise<ClusterProcess> {
  return Opened.during((opened) => start(config, opened));
}

async function start(config: ClusterConfig, opened: Opened): Promise<ClusterProcess> {
  await loadPolicyModules(config.gpu);
  const engines = await openCluster(config, 'controller', opened);
  const { instance, bus, state, clock, random, logger } = engines;
  const runtimes = new ClusterRuntimes({ ...engines, listed: await readManifest(config) });
  await runtimes.open();
  opened.onClose(() => runtimes.close());
  const name = `controller${instance}`;
  const test = await openHealthTest({ ...engines, kind: healthKind, memoryMiB: config.limits.minMemoryMiB });
  const supervision = new InvokerSupervision({
    bus,
    clock,
    logger,
    instance,
    test,
    isReadable: () => engines.isReadable(healthTopic),
  });
  const members = new Membership({ state, clock, logger, table: 'controllers', name, value: null });
  const balancer = new ShardingBalancer({
    clock,
    random,
    invokers: () => supervision.invokers(),
    controllers: () => members.members().size,
    onLost: (invoker) => supervision.finished(invoker, 'time-out'),
  });
  const changes = new EntityChanges(bus, logger, instance);
  const node = await openControllerNode({
    ...engines,
    changes,
    manifest: () => runtimes.manifest(),
    chooseInvoker: (action, namespace, activationId) => {
      const invoker = balancer.choose(action, namespace, activationId);
      return invoker === undefined ? undefined : `invoker${invoker}`;
    },
    onCompleted: (activationId, message) => {
      balancer.ended(activationId);
      if (message === undefined) return;
      supervision.finished(message.instance.instance, message.isSystemError ? 'system error' : 'success');
    },
    invokersHealth: () => supervision.health(),
    cluster: {
      silenceMs: (invoker) => supervision.silenceMs(invoker),
      controllers: () => new Set(members.members().keys()),
      usableInvokers: () => supervision.invokers().flatMap(({ instance: at, isUsable }) => (isUsable ? [at] : [])),
    },
    prewarmers: () => [],
    machines: localMachines(config, clock, logger),
  });
  opened.onClose(() => node.close());
  await changes.open();
  opened.onClose(() => changes.close());
  await supervision.open();
  opened.onClose(() => supervision.close());
  const servers = await node.listen();
  await node.start();
  // Other processes count on this controller from now on.
  await members.open();
  return {
    line: [
      `${name} is ready at ${servers.url}`,
      ...(servers.console ? [`Its console is at ${servers.console.url}/console`] : []),
    ].join('\n'),
    async close(drainMs) {
      await members.close();
      const serverClosed = servers.close(drainMs + requestGraceMs);
      await node.drain(drainMs);
      await serverClosed;
      await opened.close();
    },
  };
}

/** The operator's manifest as it is; the platform's with this process's release of Node.js as the default, as invokers have theirs. */
async function readManifest({ runtimesManifest }: ClusterConfig): Promise<RuntimeManifest> {
  const file = runtimesManifest === undefined ? manifestFile : resolve(runtimesManifest);
  const manifest = parseManifest(await readFile(file, 'utf8'), file);
  const [major = ''] = process.versions.node.split('.');
  return runtimesManifest === undefined ? withDefaultThere(manifest, 'nodejs', [major]) : manifest;
}
