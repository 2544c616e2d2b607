import { join } from 'node:path';
import type { Config } from '@gpuwhisk/common/config';
import { openEmbeddedJobs } from '@gpuwhisk/common/jobs/embedded-jobs';
import { LogRing, createLogger } from '@gpuwhisk/common/logging';
import { createMetrics } from '@gpuwhisk/common/metrics';
import { embeddedState } from '@gpuwhisk/common/state/embedded-state';
import { systemClock } from '@gpuwhisk/common/system/clock';
import { systemDisk } from '@gpuwhisk/common/system/disk';
import { systemRandom } from '@gpuwhisk/common/system/random';
import { openBus, openStore } from '@gpuwhisk/server/engines/open-engines';
import { openTracing } from '@gpuwhisk/server/engines/open-tracing';
import { openControllerNode } from '@gpuwhisk/server/node/controller-node';
import type { ControllerNode } from '@gpuwhisk/server/node/controller-node';
import { openInvokerNode } from '@gpuwhisk/server/node/invoker-node';
import { openCatalog } from '@gpuwhisk/server/node/node-containers';
import { openDataFormat } from '@gpuwhisk/server/process/data-format';
import { lockDataFolder } from '@gpuwhisk/server/process/data-lock';
import { Opened } from '@gpuwhisk/server/process/opened';
import { loadPolicyModules } from '@gpuwhisk/server/process/policy-modules';
import { showProcess } from '@gpuwhisk/server/process/process-metrics';
import { installAccounts, operatorKeyOf, takesWellKnownAccounts } from './identities.js';
import type { AccountLimits } from './identities.js';

/** A running platform. */
export interface Platform {
  /** `http://address:port`. */
  readonly url: string;
  /** Address of the API gateway; undefined if it is off. */
  readonly gatewayUrl: string | undefined;
  /** Origin of the console and the documentation; undefined if they are off. */
  readonly consoleUrl: string | undefined;
  /** Whether the platform has OpenWhisk's guest and whisk.system with their well-known keys. */
  readonly wellKnownAccounts: boolean;
  /** A line about the GPUs; undefined if there is nothing to report. */
  readonly gpus: string | undefined;
  /** One line for each part of the GPU policy without effect here, with the command that mends it. */
  readonly inert: readonly string[];
  /** One line for each feature that this machine lacks. */
  readonly notes: readonly string[];
  /**
   * Lets running activations end for up to `drainMs`, then stops everything; queued activations run after the next
   * start.
   */
  close(drainMs: number): Promise<void>;
}

/** Options of standalone that are not settings of the configuration. */
interface PlatformOptions {
  /** Limits of the well-known accounts: far above OpenWhisk's, or none of their own. */
  accountLimits: AccountLimits;
}

const instance = 0;
const requestGraceMs = 2000;

/**
 * Starts controller and invoker in this process, on embedded engines where the configuration names no others.
 * `config.dataDir` must be absolute.
 */
export function startPlatform(config: Config, options: PlatformOptions): Promise<Platform> {
  return Opened.during((opened) => start(config, options, opened));
}

async function start(given: Config, options: PlatformOptions, opened: Opened): Promise<Platform> {
  await loadPolicyModules(given.gpu);
  opened.onClose(lockDataFolder(given.dataDir));
  await openDataFormat(given.dataDir);
  const clock = systemClock;
  const random = systemRandom;
  const config = { ...given, operatorKey: given.operatorKey ?? operatorKeyOf(given.dataDir, random) };
  const logRing = new LogRing(process.stdout);
  const logger = createLogger({ level: config.logLevel, destination: logRing });
  const metrics = createMetrics();
  showProcess(metrics.registry);
  const folder = (name: string): string => join(config.dataDir, name);
  const tracing = await openTracing({ config, env: process.env, clock, logger, metrics, process: 'standalone' });
  opened.onClose(() => tracing?.close());

  const catalogFound = openCatalog(config, logger);
  // The promise is awaited below; until then its failure must not count as unhandled.
  catalogFound.catch(() => undefined);
  const store = await openStore(config, folder('store'), { clock, logger });
  opened.onClose(() => store.close());
  const messages = await openBus({ config, clock, random, logger, metrics });
  opened.onClose(() => messages.close());
  const catalog = await catalogFound;
  opened.onClose(() => catalog.close());
  const { bus, marks } = messages;
  const state = embeddedState(clock);
  opened.onClose(() => state.close());
  const { jobs, damage: lostJobs } = await openEmbeddedJobs({
    disk: systemDisk,
    folder: folder('jobs'),
    clock,
    random,
    leases: state,
    holder: `controller${instance}`,
    onWarning: (warning) => logger.warn({ err: warning }, 'a job could not be noted or got no lease; again later'),
  });
  opened.onClose(() => jobs.close());
  for (const damage of lostJobs) logger.error(damage, 'part of the jobs could not be read; the rest was');
  const tracer = tracing && { tracer: tracing.tracer };
  const engines = { config, clock, random, logger, logRing, metrics, store, bus, state, marks, jobs, ...tracer };

  const wellKnownAccounts = await takesWellKnownAccounts(config, store);
  if (wellKnownAccounts) await installAccounts(store, options.accountLimits);
  const own: { node?: ControllerNode } = {};
  const invoker = await openInvokerNode({
    ...engines,
    instance,
    catalog,
    inCluster: false,
    nodes: () => [],
    serveApi: (request, response) => {
      if (own.node) own.node.controller.handleSandboxes(request, response);
      else response.writeHead(503).end();
    },
  });
  opened.onClose(() => invoker.close());
  const node = (own.node = await openControllerNode({
    ...engines,
    instance,
    manifest: () => catalog.manifest,
    chooseInvoker: () => `invoker${instance}`,
    invokersHealth: () => ({ [`invoker${instance}/${instance}`]: 'up' }),
    prewarmers: () => invoker.prewarmers(),
  }));
  opened.onClose(() => node.close());
  const servers = await node.listen();
  await invoker.start(servers.url);
  await node.start();
  return {
    url: servers.url,
    gatewayUrl: servers.gatewayUrl,
    consoleUrl: servers.console?.url,
    wellKnownAccounts,
    inert: node.inert(),
    notes: invoker.notes,
    gpus: invoker.gpus,
    async close(drainMs) {
      const serverClosed = servers.close(drainMs + requestGraceMs);
      const untilMs = clock.monotonicMs() + drainMs;
      await node.drain(drainMs);
      await invoker.drain(Math.max(0, untilMs - clock.monotonicMs()));
      await node.close();
      await serverClosed;
      await opened.close();
    },
  };
}
