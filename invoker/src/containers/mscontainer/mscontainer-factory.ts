import { systemRandom } from '@gpuwhisk/common/system/random';
import type { Random } from '@gpuwhisk/common/system/random';
import { ProvisioningError } from '../container-factory.js';
import type { Container, ContainerFactory, ContainerSpec } from '../container-factory.js';
import type { ProcessContainerFactory } from '../process/factory-options.js';
import type { RuntimeCatalog, RuntimeLaunch } from '../runtime-launch.js';
import { MsContainers } from './ms-containers.js';

/** Dependencies of the mscontainer factory. */
export interface MsContainerFactoryOptions {
  /** Makes every container; it is started and closed with this factory. */
  processes: ProcessContainerFactory;
  catalog: RuntimeCatalog;
  logger?: { info(message: string): void; warn(message: string): void };
  random?: Random;
}

/**
 * A factory whose prewarmed containers are pairs that functions are injected into. Several pairs share the PID namespace
 * of an MSContainer where the host is fit for it, else each has its own. A container that an activation waits for is a plain
 * process, which starts fastest, unless functions of its kind run in pairs only.
 */
export function createMsContainerFactory(options: MsContainerFactoryOptions): ContainerFactory {
  const { processes, catalog, logger, random = systemRandom } = options;
  const msContainers = new MsContainers(() => processes.hold(), random);
  let sharing = false;

  const launchOf = (spec: ContainerSpec): Promise<RuntimeLaunch> =>
    catalog.launch(spec.kind, spec.requirements, spec.memoryMiB);

  const startPair = (spec: ContainerSpec, launch: RuntimeLaunch, ahead: boolean): Promise<Container> =>
    sharing && spec.gpu === undefined // What serves a GPU may have one user for all, who could signal each other.
      ? msContainers.add((shared) => processes.launchContainer(spec, launch, { shared, ahead }))
      : processes.launchContainer(spec, launch, { ahead });

  return {
    async start() {
      const report = await processes.start();
      try {
        await msContainers.start();
        sharing = true;
      } catch (error) {
        logger?.info(`Each container has a PID namespace of its own. ${(error as Error).message}`);
      }
      return report;
    },
    supports: (kind) => processes.supports(kind),
    async create(spec, ahead = false) {
      const launch = await launchOf(spec);
      return launch.traces ? startPair(spec, launch, ahead) : processes.launchContainer(spec, launch, { ahead });
    },
    async prewarm(spec) {
      const launch = await launchOf(spec);
      if (launch.traces) return startPair(spec, launch, true);
      // A pair runs one function at a time.
      if (spec.concurrency > 1 || !launch.pair) return processes.launchContainer(spec, launch, { ahead: true });
      try {
        return await startPair(spec, launch.pair, true);
      } catch (error) {
        if (!(error instanceof ProvisioningError)) throw error;
        logger?.warn(`A plain process is made ready instead of a pair. ${error.message}`);
        return processes.launchContainer(spec, launch, { ahead: true });
      }
    },
    match: (prewarmed, wanted) => processes.match(prewarmed, wanted),
    async close() {
      await processes.close();
      await msContainers.close();
    },
  };
}
