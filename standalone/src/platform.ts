import { totalmem } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { RecordWriter } from '@gpuwhisk/common/activations/record-writer';
import { openDurable } from '@gpuwhisk/common/bus/durable';
import type { Config } from '@gpuwhisk/common/config';
import { createArgumentUnlock } from '@gpuwhisk/common/entities/parameter-encryption';
import { LogRing } from '@gpuwhisk/common/log-ring';
import { createLogger } from '@gpuwhisk/common/logging';
import { unplacedTopic } from '@gpuwhisk/common/messages';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemDisk } from '@gpuwhisk/common/system/disk';
import { systemNetwork } from '@gpuwhisk/common/system/network';
import type { HttpHandler } from '@gpuwhisk/common/system/network';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { identityChanges } from '@gpuwhisk/controller/api/admin';
import { GpuScheduler } from '@gpuwhisk/controller/balance/gpu-scheduler';
import { GpuTable } from '@gpuwhisk/controller/balance/gpu-table';
import { GpuWishes } from '@gpuwhisk/controller/balance/gpu-wishes';
import { GpuWorkloads } from '@gpuwhisk/controller/balance/gpu-workloads';
import { LeaseKeeper } from '@gpuwhisk/controller/balance/lease-keeper';
import { createController } from '@gpuwhisk/controller/create-controller';
import type { Controller } from '@gpuwhisk/controller/create-controller';
import { InFlight } from '@gpuwhisk/controller/entitlement/in-flight';
import { Dispatcher } from '@gpuwhisk/controller/invoke/dispatcher';
import { createMsContainerFactory } from '@gpuwhisk/invoker/containers/mscontainer/mscontainer-factory';
import { createProcessFactory } from '@gpuwhisk/invoker/containers/process/process-factory';
import { NamespaceBlacklist } from '@gpuwhisk/invoker/namespace-blacklist';
import { Invoker } from '@gpuwhisk/invoker/invoker';
import { ProvisioningError } from '@gpuwhisk/invoker/containers/container-factory';
import { toldToAgent } from '@gpuwhisk/invoker/gpu-agent/gpu-factory';
import { createRuntimeCatalog } from '@gpuwhisk/invoker/runtimes/create-runtime-catalog';
import { lockDataFolder } from './data-lock.js';
import { listen } from './servers.js';
import { openGpus } from './open-gpus.js';
import type { NodeGpus } from './open-gpus.js';
import { openStore, takesWellKnownAccounts } from './open-store.js';
import { installAccounts } from './standalone-identities.js';
import type { AccountLimits } from './standalone-identities.js';
import { stemCellConfigs } from './stem-cell-configs.js';

/** The host forbids a measure of isolation that the configuration requires. */
export class IsolationError extends Error {
  override name = 'IsolationError';
}

/** A platform that serves. */
export interface Platform {
  /** `http://address:port`. */
  readonly url: string;
  /** Where the API gateway is reached; undefined where it is off. */
  readonly gatewayUrl: string | undefined;
  /** Whether it has OpenWhisk's guest and whisk.system with the keys that everybody knows. */
  readonly wellKnownAccounts: boolean;
  /** A line about the GPUs; undefined: there is nothing to say. */
  readonly gpus: string | undefined;
  /** Plain lines about what this machine lacks. */
  readonly notes: readonly string[];
  /** Lets running activations end for up to `drainMs`, then stops everything; what waits is run by the next life. */
  close(drainMs: number): Promise<void>;
}

/** What is standalone's own, and no setting of a platform. */
export interface PlatformOptions {
  /** The limits of the well-known accounts: far above OpenWhisk's, or none of their own. */
  accountLimits: AccountLimits;
}

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const MiB = 1024 * 1024;
const instance = 0;
const invokerTopic = `invoker${instance}`;
const compositionsTopic = `compositions${instance}`;
const completedTopic = `completed${instance}`;
const gpuTopic = unplacedTopic(instance);
/** Activations that the invoker holds; others wait in the bus. */
const maxInFlight = 2000;
const requestGraceMs = 2000;
/** The start itself is over by then. */
const prepareAfterMs = 15_000;

/** Starts controller and invoker in this process on embedded engines. `config.dataDir` must be absolute. */
export async function startPlatform(config: Config, options: PlatformOptions): Promise<Platform> {
  const unlock = lockDataFolder(config.dataDir);
  const releases: (() => Promise<unknown> | void)[] = [unlock];
  const releaseAll = async (): Promise<void> => {
    for (const release of releases.splice(0).reverse()) await release();
  };
  try {
    return await start(config, options, releases, releaseAll);
  } catch (error) {
    await releaseAll();
    throw error;
  }
}

async function start(
  config: Config,
  options: PlatformOptions,
  releases: (() => Promise<unknown> | void)[],
  releaseAll: () => Promise<void>,
): Promise<Platform> {
  const clock = systemClock;
  const random = systemRandom;
  const logRing = new LogRing(process.stdout);
  const logger = createLogger({ level: config.logLevel, destination: logRing });
  const metrics = createMetrics();
  const folder = (name: string): string => join(config.dataDir, name);

  const catalogFound = createRuntimeCatalog({
    runtimesDir: join(root, 'runtimes'),
    ...(config.runtimesManifest !== undefined && { manifestFile: resolve(config.runtimesManifest) }),
    dataDir: config.dataDir,
    requirementsMiB: config.requirementsMiB,
    clock,
    logger,
  });
  // It is looked at below; until then its failure must not count as unhandled.
  catalogFound.catch(() => undefined);
  const store = await openStore(config, folder('store'), clock);
  releases.push(() => store.close());
  const durable = await openDurable({
    disk: systemDisk,
    folder: folder('log'),
    clock,
    random,
    onWarning: (warning) => logger.error({ err: warning }, 'the log has a problem'),
  });
  releases.push(() => durable.close());
  const catalog = await catalogFound;
  releases.push(() => catalog.close());
  for (const damage of durable.damage) logger.error(damage, 'part of the log could not be read; the rest was');
  // Filled in once the addresses are known; no container starts before that.
  const runtimeEnv: Record<string, string> = {};
  const api: { controller?: Controller } = {};
  let gpus: Pick<NodeGpus, 'agent'> = {};
  const processes = createProcessFactory({
    catalog,
    clock,
    dataDir: config.dataDir,
    actionNetwork: config.actionNetwork,
    runtimeEnv,
    gpuAccess: (grant) => {
      if (!gpus.agent) return Promise.reject(new ProvisioningError('There is no GPU here.'));
      return gpus.agent.accessFor(grant);
    },
    serveSandboxes: async (address) => {
      const handle: HttpHandler = (request, response) => {
        if (api.controller) api.controller.handle(request, response);
        else response.writeHead(503).end();
      };
      const server = await systemNetwork.listen(handle, { host: address, port: 0 });
      releases.push(() => server.close(0));
      return server.port;
    },
  });
  const factory =
    config.containers === 'process' ? processes : createMsContainerFactory({ processes, catalog, logger });
  const { bus } = durable;
  const wellKnownAccounts = await takesWellKnownAccounts(config, store);
  const limits = { maxPendingMessages: config.maxQueuedActivations, maxPendingBytes: config.maxQueuedBytes };
  const [isolationNotes] = await Promise.all([
    factory.start(),
    bus.ensureTopic(invokerTopic, { durable: true, ...limits }),
    bus.ensureTopic(compositionsTopic, { durable: true, ...limits }),
    bus.ensureTopic(gpuTopic, { durable: true, ...limits, maxPendingMessages: config.gpu.maxWaiting }),
    bus.ensureTopic(completedTopic, { durable: false, maxPendingMessages: 100_000, maxPendingBytes: Infinity }),
    wellKnownAccounts ? installAccounts(store, options.accountLimits) : undefined,
  ]);
  releases.push(() => factory.close());
  if (config.requireIsolation && isolationNotes.length > 0) {
    throw new IsolationError(
      `Isolation is required, and this host lacks some:\n${isolationNotes.map((note) => `  ${note}`).join('\n')}`,
    );
  }

  const state = embeddedState(clock);
  releases.push(() => state.close());
  const nodeGpus = await openGpus({ config, invoker: invokerTopic, state, clock, logger });
  releases.push(() => nodeGpus.close());
  gpus = nodeGpus;
  const { agent } = nodeGpus;
  const records = new RecordWriter(store, clock, logger);
  releases.push(() => records.close());
  const gpuTable = new GpuTable(state, clock);
  await gpuTable.open();
  const gpuWorkloads = new GpuWorkloads(store, state, random, logger);
  await gpuWorkloads.open();
  releases.push(() => gpuWorkloads.close());
  const gpuWishes = new GpuWishes(store, state, clock);
  await gpuWishes.open();
  const gpuLease = new LeaseKeeper(state, clock, logger, 'gpu-scheduler', `controller${instance}`);
  await gpuLease.open();
  releases.push(() => gpuLease.close());
  const gpuScheduler = new GpuScheduler({
    ...{ bus, clock, store, records, logger, metrics, instance },
    table: gpuTable,
    lease: gpuLease,
    recordLevels: config,
    options: config.gpu,
  });
  const dispatcher = new Dispatcher({
    bus,
    clock,
    random,
    inFlight: new InFlight({ state, limits: config.limits, clock, metrics, logger }),
    logger,
    instance,
    chooseInvoker: () => invokerTopic,
    gpu: gpuScheduler,
  });
  await dispatcher.open();
  const blacklist = new NamespaceBlacklist(store, clock, logger);
  await blacklist.start();
  releases.push(() => blacklist.close());
  await state.subscribe(identityChanges, () => void blacklist.refresh());
  // A manifest of the operator's own is taken at its word.
  const readiesAll = config.prepareRuntimes || config.runtimesManifest !== undefined;
  const invoker = new Invoker({
    instance,
    bus,
    store,
    factory: agent ? toldToAgent(factory, agent, clock) : factory,
    marks: durable.marks,
    clock,
    logger,
    metrics,
    pool: {
      ...config.pool,
      memoryMiB: config.poolMemoryMiB ?? Math.floor((totalmem() / MiB) * 0.6),
      stemCells: config.stemCells ? stemCellConfigs(catalog.manifest, readiesAll) : [],
      stemCellsOnDemand: config.stemCells,
      gpuStemCells: config.gpu.prewarm,
    },
    resultBounds: config.limits,
    recordLevels: config,
    blacklist,
    maxInFlight,
    ...(agent && { gpu: agent }),
    unlockArguments: createArgumentUnlock(config.parameterStorage),
  });
  // Filled in once the port is known.
  const gateway: { url?: string | undefined } = {};
  const controller = (api.controller = createController({
    store,
    records,
    clock,
    random,
    config,
    manifest: () => catalog.manifest,
    logger,
    metrics,
    invoker: dispatcher,
    state,
    bus,
    gpuTable,
    gpuWorkloads,
    gpuWishes,
    gpuScheduler,
    marks: durable.marks,
    instance,
    logRing,
    gatewayUrl: () => gateway.url,
    invokersHealth: () => ({ [`invoker${instance}/${instance}`]: 'up' }),
    prewarmers: () => invoker.prewarmers(),
    build: { date: '2026-11-21', number: '0.1.0' },
  }));
  const servers = await listen(config, controller);
  const { url, gatewayUrl } = servers;
  gateway.url = gatewayUrl;
  runtimeEnv.__OW_API_HOST =
    config.apiHost ?? (processes.sandboxService === undefined ? url : `http://${processes.sandboxService}`);
  await invoker.start();
  await controller.composing.open();
  if (config.prepareRuntimes) {
    const timer = clock.setBackgroundTimer(prepareAfterMs, () => void catalog.prepare());
    releases.push(() => timer.cancel());
  }
  return {
    url,
    gatewayUrl,
    wellKnownAccounts,
    notes: [...isolationNotes, ...catalog.notes],
    gpus: nodeGpus.line,
    async close(drainMs) {
      const serverClosed = servers.close(drainMs + requestGraceMs);
      const untilMs = clock.monotonicMs() + drainMs;
      // What runs has components to come, which need the invoker.
      await controller.composing.close(drainMs);
      await gpuScheduler.close();
      await invoker.close(Math.max(0, untilMs - clock.monotonicMs()));
      await dispatcher.close();
      await serverClosed;
      await releaseAll();
    },
  };
}
