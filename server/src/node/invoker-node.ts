import { totalmem } from 'node:os';
import { join } from 'node:path';
import { ActivityReporter } from '@gpuwhisk/common/activations/activity';
import type { Config } from '@gpuwhisk/common/config';
import { createArgumentUnlock } from '@gpuwhisk/common/entities/parameter-encryption';
import type { Prewarmer } from '@gpuwhisk/common/prewarmer';
import { resolveKind } from '@gpuwhisk/common/runtimes';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import type { HttpHandler } from '@gpuwhisk/common/system/network';
import { openUserEvents } from '@gpuwhisk/common/user-events';
import { identityChanges } from '@gpuwhisk/controller/api/admin';
import { ProvisioningError, IsolationError } from '@gpuwhisk/invoker/containers/container-factory';
import { showDevices } from '@gpuwhisk/invoker/gpu-agent/device-metrics';
import { reportingFactory } from '@gpuwhisk/invoker/gpu-agent/gpu-runs';
import { Invoker } from '@gpuwhisk/invoker/invoker';
import { learnedFile } from '@gpuwhisk/invoker/runtimes/learned-file';
import { LearnedImports } from '@gpuwhisk/invoker/activation/learned-imports';
import { FollowedRuns } from '@gpuwhisk/invoker/activation/followed-runs';
import { TrainingRuns } from '@gpuwhisk/invoker/activation/training-runs';
import { NamespaceBlacklist } from '@gpuwhisk/invoker/namespace-blacklist';
import type { PoolOptions } from '@gpuwhisk/invoker/pool/container-pool';
import { queueLimits } from '../engines/engines.js';
import type { Engines } from '../engines/engines.js';
import { Opened } from '../process/opened.js';
import { stemCellConfigs } from './node-containers.js';
import type { NodeCatalog } from './node-containers.js';
import { openGpus } from './open-gpus.js';
import type { NodeGpus } from './open-gpus.js';
import { PlatformAddresses, engineHosts } from './platform-addresses.js';

/** Dependencies of an invoker's node. */
interface InvokerNodeOptions extends Engines {
  /** The invoker's number. */
  instance: number;
  catalog: NodeCatalog;
  /** Whether the invoker belongs to a cluster, in which other machines send functions to it. */
  inCluster: boolean;
  /** Addresses of the cluster's present machines. */
  nodes(): readonly string[];
  /** Answers requests of functions to the platform's API. */
  serveApi: HttpHandler;
  /** False while the cluster may have retired this invoker; absent if retirement cannot happen. */
  mayBegin?: () => boolean;
}

/** An invoker with its containers and GPUs. */
interface InvokerNode {
  /** A line about the GPUs; undefined if there is nothing to report. */
  readonly gpus: string | undefined;
  /** One line for each feature that this machine lacks. */
  readonly notes: readonly string[];
  /** Containers that are ready for a future action. */
  prewarmers(): Prewarmer[];
  /** MiB that containers may claim in total. */
  readonly memoryMiB: number;
  /** Takes activations. Functions reach the API at `apiUrl`, unless their sandboxes have another address for it. */
  start(apiUrl: string): Promise<void>;
  /** Takes no more activations, lets running ones end for up to `drainMs`, and ends the containers. */
  drain(drainMs: number): Promise<void>;
  /** Ends the remaining activations and containers; called after `drain` if there was time for it. */
  close(): Promise<void>;
}

const MiB = 1024 * 1024;
/** Activations that the invoker holds; others wait in the bus. */
const maxInFlight = 2000;
/** Delay of the preparation, ms: the start itself is over by then. */
const prepareAfterMs = 15_000;
/** Time that a start waits for runtimes to be fetched, ms; fetching continues afterwards. */
const fetchWithinMs = 60_000;

/**
 * Opens an invoker that takes no activations yet. Throws IsolationError, and ConfigError for GPUs that cannot be
 * opened.
 */
export function openInvokerNode(options: InvokerNodeOptions): Promise<InvokerNode> {
  // Functions run as users of their own, which must be able to enter folders. Files for their owner alone get their
  // mode explicitly.
  process.umask(0o022);
  return Opened.during((opened) => openNode(options, opened));
}

async function openNode(options: InvokerNodeOptions, opened: Opened): Promise<InvokerNode> {
  const { config, instance, catalog, bus, store, state, marks, clock, logger, metrics } = options;
  const topic = `invoker${instance}`;
  // The values are set once the addresses are known; no container starts before that.
  const keepContext = config.gpu.keepContext;
  const runtimeEnv: Record<string, string> = keepContext === undefined ? {} : { GPUWHISK_CUDA_KEEP: keepContext };
  const gpus: { opened?: NodeGpus } = {};
  const memoryMiB = config.poolMemoryMiB ?? Math.floor((totalmem() / MiB) * 0.6);
  const { factory, service, denyNodes } = catalog.createFactory({
    instance,
    memoryMiB,
    runtimeEnv,
    gpuAccess: (grant) => {
      const agent = gpus.opened?.agent;
      return agent ? agent.accessFor(grant) : Promise.reject(new ProvisioningError('There is no GPU here.'));
    },
    serve: async (address) => {
      const server = await systemNetwork.listen(options.serveApi, { host: address, port: 0 });
      opened.onClose(() => server.close(0));
      return server.port;
    },
  });
  const [report] = await Promise.all([factory.start(), bus.ensureTopic(topic, queueLimits(config))]);
  opened.onClose(() => factory.close());
  refuseWeakIsolation(config, report.weaknesses, options.inCluster);
  const addresses = new PlatformAddresses({
    hosts: engineHosts(config),
    nodes: options.nodes,
    deny: denyNodes,
    clock,
    logger,
  });
  opened.onClose(() => addresses.close());
  await addresses.open();
  const nodeGpus = (gpus.opened = await openGpus({ config, invoker: topic, state, clock, logger }));
  opened.onClose(() => nodeGpus.close());
  const blacklist = new NamespaceBlacklist(store, clock, logger);
  await blacklist.start();
  opened.onClose(() => blacklist.close());
  await state.subscribe(identityChanges, () => void blacklist.refresh());
  const { agent } = nodeGpus;
  const { registry } = metrics;
  const userEvents = config.userEvents ? await openUserEvents({ bus, clock, registry, source: topic }) : undefined;
  catalog.showMetrics(registry);
  if (agent !== undefined) showDevices(registry, () => agent.shown);
  const { mayBegin } = options;
  const parts = { invoker: topic, dataDir: config.dataDir, state, clock, logger };
  const trainings = agent && new TrainingRuns({ ...parts, ...(mayBegin && { mayBegin }) });
  await trainings?.open();
  opened.onClose(() => trainings?.close());
  const activity = new ActivityReporter({ state, clock, logger });
  opened.onClose(() => activity.close());
  const followed = new FollowedRuns({ invoker: topic, state, clock, logger });
  await followed.open();
  opened.onClose(() => followed.close());
  const file = learnedFile(join(config.dataDir, `learned-imports-${instance}.json`), logger);
  const learned = config.warm.learn ? await LearnedImports.open({ file, clock, logger }) : undefined;
  const invoker = new Invoker({
    activity,
    instance,
    bus,
    store,
    marks,
    clock,
    logger,
    metrics,
    blacklist,
    maxInFlight,
    factory: agent ? reportingFactory(factory, agent, clock) : factory,
    pool: poolOptions(options, memoryMiB),
    resultBounds: config.limits,
    warmGpuContainers: config.limits.warmGpuContainers,
    recordLevels: config,
    recordBounds: { maxPendingBytes: config.maxUnstoredBytes },
    ...(agent && { gpu: agent }),
    ...(trainings && { trainings }),
    followed,
    ...(learned && { learned }),
    ...(userEvents && { userEvents }),
    ...(options.tracer && { tracer: options.tracer }),
    ...(mayBegin && { mayBegin }),
    unlockArguments: createArgumentUnlock(config.parameterStorage),
    defaultKind: (kind) => resolveKind(catalog.manifest, kind)?.kind,
  });
  const sharing = nodeGpus.sharing === undefined ? [] : [nodeGpus.sharing];
  return {
    gpus: nodeGpus.line,
    notes: [...sharing, ...report.weaknesses, ...report.notes, ...catalog.notes],
    memoryMiB,
    prewarmers: () => invoker.prewarmers(),
    async start(apiUrl) {
      const reached = service();
      runtimeEnv.__OW_API_HOST = config.apiHost ?? (reached === undefined ? apiUrl : `http://${reached}`);
      // Runtimes are fetched before the invoker takes work. An invoker that cannot reach the registry serves all other
      // kinds.
      await Promise.race([
        catalog.fetchDefaults(),
        new Promise<void>((resolve) => clock.setBackgroundTimer(fetchWithinMs, resolve)),
      ]);
      await invoker.start();
      if (!config.prepareRuntimes) return;
      const timer = clock.setBackgroundTimer(prepareAfterMs, () => void catalog.prepare());
      opened.onClose(() => timer.cancel());
    },
    async drain(drainMs) {
      // Closing does not wait for a start that waits for a release of Node.js; its activation runs after the next
      // start.
      await Promise.all([invoker.close(drainMs), catalog.close()]);
    },
    close: () => opened.close(),
  };
}

function poolOptions({ config, catalog }: InvokerNodeOptions, memoryMiB: number): PoolOptions {
  // The operator's own manifest is applied as it stands.
  const readiesAll = config.prepareRuntimes || config.runtimesManifest !== undefined;
  return {
    ...config.pool,
    memoryMiB,
    stemCells: config.stemCells ? stemCellConfigs(catalog.manifest, readiesAll) : [],
    stemCellsOnDemand: config.stemCells,
    gpuStemCells: config.gpu.prewarm,
    learnedMiB: config.warm.memoryMiB ?? memoryMiB / 8,
    reusesLearned: config.warm.reuse,
  };
}

const loopback = /^(localhost|127(\.\d{1,3}){3}|::1)$/i;

/**
 * Throws IsolationError if the host forbids measures of isolation. Does not throw if the configuration allows to run
 * without them, or has no such setting and only programs of this machine can reach the API.
 */
export function refuseWeakIsolation(
  { allowWeakIsolation, host }: Pick<Config, 'allowWeakIsolation' | 'host'>,
  weaknesses: readonly string[],
  inCluster: boolean,
): void {
  const onlyLocal = !inCluster && loopback.test(host);
  if (weaknesses.length === 0 || (allowWeakIsolation ?? onlyLocal)) return;
  const why = inCluster
    ? 'an invoker of a cluster'
    : onlyLocal
      ? 'a server with allowWeakIsolation=false'
      : `a server at '${host}'`;
  const list = weaknesses.map((line) => line.replace(/\.$/, '')).join('; ');
  throw new IsolationError(
    `This host forbids measures of isolation that ${why} does not do without, unless it is given --allow-weak-isolation: ${list}.`,
  );
}
